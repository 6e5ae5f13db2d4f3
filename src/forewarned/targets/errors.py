"""What goes wrong with a target."""


class TargetError(Exception):
    """A target has failed, or refuses. It may go better the next time."""
