"""Content negotiation: media types, representations of objects, and the encoding of errors, for all endpoints."""
