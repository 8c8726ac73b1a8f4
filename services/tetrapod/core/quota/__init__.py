"""Quota evaluation of built-in kinds.

The package computes the usage of an object, the quotas that apply to it, and what determines its usage.

Upstream: pkg/quota/v1.
"""
