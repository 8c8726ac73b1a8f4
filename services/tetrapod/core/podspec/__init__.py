"""The rules that pods and pod templates share: validation, defaults, warnings and gated fields.

The kinds that hold a pod template (of core/v1, apps and batch) import from here; nothing here knows a kind.
"""
