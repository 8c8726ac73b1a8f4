"""The kinds of autoscaling/v2 and v1. Upstream: pkg/apis/autoscaling."""
