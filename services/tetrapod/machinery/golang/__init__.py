"""Behaviour that follows from upstream being written in Go: text forms of values, parsers, and error texts."""
