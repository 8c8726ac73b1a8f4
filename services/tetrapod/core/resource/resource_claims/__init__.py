"""ResourceClaims."""
