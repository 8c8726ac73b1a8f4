"""Warnings about objects that are valid but will surprise: deprecated fields and the like. Upstream: pkg/api/*/warnings.go."""
