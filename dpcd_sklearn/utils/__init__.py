"""The lowest room: checks of public arguments, scikit-learn's versions."""
