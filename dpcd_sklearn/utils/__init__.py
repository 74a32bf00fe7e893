"""The lowest room: checks of public arguments and what differs between scikit-learn versions."""
