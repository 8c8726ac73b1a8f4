"""Start-up, readiness, health checks and shutdown of a server."""
