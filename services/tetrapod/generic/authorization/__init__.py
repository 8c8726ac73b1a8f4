"""Authorization of requests: the authorizer interface, RBAC rules, webhooks and delegation to the auth service."""
