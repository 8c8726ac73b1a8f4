"""The kinds of storage.k8s.io/v1. Upstream: pkg/apis/storage."""
