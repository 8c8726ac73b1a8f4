"""Events: one kind, served by core/v1 and events.k8s.io/v1. Upstream: pkg/apis/events and pkg/apis/core."""
