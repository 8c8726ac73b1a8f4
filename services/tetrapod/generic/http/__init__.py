"""The HTTP server: HTTP/1.1, HTTP/2, WebSocket and TLS."""
