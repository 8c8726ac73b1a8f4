"""The usage of built-in kinds in ResourceQuotas.

The package computes the usage of an object, the quotas that count it, and reads the other objects that its usage
depends on. Admission and the quota controller use it.

Upstream: pkg/quota/v1.
"""
