"""The kinds of policy/v1. Evictions are a subresource of pods. Upstream: pkg/apis/policy."""
