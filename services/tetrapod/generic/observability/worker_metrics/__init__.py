"""The metrics of all workers of a server (--workers), which each worker shows as those of one server."""
