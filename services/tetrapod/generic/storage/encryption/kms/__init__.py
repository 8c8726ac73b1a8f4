"""Encryption at rest by KMS plugins (KMS v2)."""
