"""`TakesTooLong`: the signal that work takes too long for the event loop."""


class TakesTooLong(Exception):
    """Raised by work that has changed nothing yet; the caller starts it again in a thread."""
