"""Allocation of cluster IPs and node ports, and the controllers that repair the allocations."""
