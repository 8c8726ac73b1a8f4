"""The admission plugins that only the core service has, and `plugins.py`, which lists all of its plugins in order."""
