module http2server

go 1.24
