"""The kinds of storagemigration.k8s.io/v1. Upstream: pkg/apis/storagemigration."""
