"""Upstream's SetDefaults_ functions, which run after the schema's own defaults.

They change the object in place and do no I/O.
"""
