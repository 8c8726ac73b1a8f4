"""The generic store: create, update, delete, get, list and watch of one resource."""
