"""Encryption at rest by KMS plugins of the deprecated API v1beta1 (KMS v1, behind the feature gate `KMSv1`)."""
