"""HTTP/2 frames and header blocks, for the server (`generic/http/h2`) and the gRPC client (`generic/rpc`)."""
