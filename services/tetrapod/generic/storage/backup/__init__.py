"""Backups: the contents of a store at one revision.

They are read from etcd or SQLite, kept in a file, and written to etcd or SQLite.
"""
