"""Power cuts: every write and sync of SQLite is recorded, and the disks that could be left after each of them are made and opened."""
