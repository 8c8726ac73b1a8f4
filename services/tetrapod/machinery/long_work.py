"""`TakesTooLong`: the exception of work that would keep the event loop from running for too long."""


class TakesTooLong(Exception):
    """The signal that the caller must repeat the work in a thread; raised before the work has changed anything."""
