"""PodCertificateRequest: its definition, strategies, validation and columns."""
