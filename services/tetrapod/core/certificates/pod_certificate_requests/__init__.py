"""PodCertificateRequests."""
