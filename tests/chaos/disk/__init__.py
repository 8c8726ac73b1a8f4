"""Power cuts: record every write and sync of SQLite, build the disks that could remain after each of them, and open
them.
"""
