"""The HTTP server: HTTP/1.1, upgrades to WebSocket, and TLS."""
