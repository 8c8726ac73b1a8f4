"""ResourceClaims: definition, strategies, validation of spec and status, and table columns."""
