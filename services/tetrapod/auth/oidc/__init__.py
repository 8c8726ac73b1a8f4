"""Authentication by JWTs of external issuers (OpenID Connect)."""
