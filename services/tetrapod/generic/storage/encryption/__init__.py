"""Encryption at rest, with upstream's EncryptionConfiguration and formats.

Tetrapod and a stock kube-apiserver on the same store can read each other's values. `Encryption` is the entry point.
Without a configuration, only `metrics` is imported.
"""
