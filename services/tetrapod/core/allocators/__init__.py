"""Allocation of cluster IPs and node ports."""
