"""The kinds of batch/v1. Upstream: pkg/apis/batch."""
