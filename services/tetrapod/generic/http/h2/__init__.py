"""The HTTP/2 server: connections that a client has opened with ALPN `h2`.

Upstream: golang.org/x/net/http2, server.go, with the settings of staging/src/k8s.io/apiserver/pkg/server/
secure_serving.go.
"""
