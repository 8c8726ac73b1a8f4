"""PersistentVolumeClaim: its definition, strategy, validation and columns.

Its spec is in `core/podspec/claim_spec.py`.
"""
