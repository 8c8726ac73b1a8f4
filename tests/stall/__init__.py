"""Requests that could stall the server, and what each of them costs every other user."""
