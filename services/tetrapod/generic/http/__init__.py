"""The HTTP server: HTTP/1.1, HTTP/2 (`h2`), upgrades to WebSocket, and TLS."""
