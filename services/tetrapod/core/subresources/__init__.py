"""Shared parts of the subresources of pods, nodes and services: backends, the proxying of requests, and the stores."""
