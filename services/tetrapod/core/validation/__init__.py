"""What makes an object of core/v1 invalid: one file per kind or per part of a pod. Upstream: pkg/apis/core/validation."""
