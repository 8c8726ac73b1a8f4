"""The auth service: authenticates tokens, evaluates RBAC, and serves the kinds of both."""
