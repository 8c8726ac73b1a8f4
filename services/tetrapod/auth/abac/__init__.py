"""The ABAC authorizer, configured by a policy file."""
