"""Admission: the chain of plugins, among them those for policies and webhooks."""
