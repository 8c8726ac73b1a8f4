"""The generic API server, which every service is built from."""
