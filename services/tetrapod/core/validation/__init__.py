"""Validation rules that several kinds share: names, quantities, paths, conditions, immutability.

The rules of one kind stand in the kind's own module, those of pod specs in `core/podspec`.
Upstream: pkg/apis/core/validation and the validation packages of the other API groups (pkg/apis/*/validation).
"""
