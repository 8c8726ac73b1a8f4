"""Admission: the chain of plugins, policies, and webhooks."""
