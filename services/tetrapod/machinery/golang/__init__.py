"""Behaviour that follows from upstream being written in Go.

The package has text forms of values, parsers, and the error texts of both.
"""
