"""Managed fields: server-side apply and the tracking of managers."""
