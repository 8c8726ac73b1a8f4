"""The kinds of apps/v1. Upstream: pkg/apis/apps."""
