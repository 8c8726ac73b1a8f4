"""Warnings about objects that are valid but likely not what the user intends, such as deprecated fields.

Upstream: pkg/api/*/warnings.go.
"""
