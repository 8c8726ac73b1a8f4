"""Encryption at rest by KMS plugins."""
