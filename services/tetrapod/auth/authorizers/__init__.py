"""The chain of authorizers that flags or an AuthorizationConfiguration select."""
