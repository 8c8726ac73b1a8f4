"""Announcements of the aggregators that share a store.

An aggregator announces itself in the Endpoints of the service `kubernetes` and by an identity lease.
"""
