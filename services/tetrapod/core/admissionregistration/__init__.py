"""The kinds of admissionregistration.k8s.io/v1. Upstream: pkg/apis/admissionregistration."""
