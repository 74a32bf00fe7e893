"""The lowest room: checks of public arguments, the rules of leaks, scikit-learn's versions."""
