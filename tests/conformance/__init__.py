"""Upstream's conformance suite over a cluster of two nodes (`make conformance`)."""
