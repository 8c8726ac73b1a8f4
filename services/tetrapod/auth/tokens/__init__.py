"""Authenticators of bearer tokens (service accounts, static tokens, bootstrap tokens), and the issue of tokens."""
