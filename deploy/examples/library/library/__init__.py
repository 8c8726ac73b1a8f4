"""An external API server for books and shelves, written with `tetrapod.generic`.

It serves the group `library.example.com` and has a SQLite database of its own.
"""
