"""Structural schemas: decoding, defaulting, pruning and validation."""
