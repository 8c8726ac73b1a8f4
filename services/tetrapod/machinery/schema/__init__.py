"""Structural schemas: decoding, defaulting, pruning and validation of objects, and validation of the schemas."""
