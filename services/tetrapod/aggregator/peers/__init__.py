"""Requests for resources that only peer API servers serve, and discovery that includes the resources of peers."""
