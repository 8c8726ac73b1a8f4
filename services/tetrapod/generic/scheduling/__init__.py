"""Fair scheduling of the event loop: the requests of one user do not delay those of another.

docs/explanation/event-loop-scheduling.md explains it.
"""
