"""The chain of authorizers, as flags or an AuthorizationConfiguration select them."""
