"""HTTP/2 to backends that offer it by ALPN: many requests over one connection, on the frames of `generic/http2`."""
