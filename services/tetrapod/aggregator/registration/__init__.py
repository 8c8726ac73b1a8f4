"""The `apiservices` resource: its definition, strategies and validation."""
