"""Fair scheduling of the event loop: one user's requests do not hold up another's.

docs/explanation/event-loop-scheduling.md explains it.
"""
