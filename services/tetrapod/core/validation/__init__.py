"""Hand-written validation of API objects: one module per kind, or per part of a pod.

Upstream: pkg/apis/core/validation and the validation packages of the other API groups (pkg/apis/*/validation).
"""
