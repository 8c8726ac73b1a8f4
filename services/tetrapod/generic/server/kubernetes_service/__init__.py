"""The announcement of API servers to clients and to each other.

An aggregator adds its address to the Endpoints of the Service `kubernetes`. Every server has an identity Lease.
"""
