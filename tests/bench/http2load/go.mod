module tetrapod.dev/tests/http2load

go 1.24.0
