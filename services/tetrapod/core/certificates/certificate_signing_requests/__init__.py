"""CertificateSigningRequest: its definition, strategies, validation, columns and metrics."""
