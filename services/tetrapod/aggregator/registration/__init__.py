"""The `apiservices` resource: what distinguishes it from any other."""
