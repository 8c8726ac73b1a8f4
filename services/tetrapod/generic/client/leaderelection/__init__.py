"""Leader election with a Lease: one replica of a service runs the controllers.

Upstream: client-go/tools/leaderelection.
"""
