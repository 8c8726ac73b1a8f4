"""Authentication of requests: client certificates, identity headers and bearer tokens."""
