"""Tokens: of service accounts, from a file, and of bootstrap secrets."""
