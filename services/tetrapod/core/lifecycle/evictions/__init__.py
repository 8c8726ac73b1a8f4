"""Evictions: the progress of evicting a pod, for all its EvictionRequests together.

Upstream: pkg/registry/lifecycle/eviction.
"""
