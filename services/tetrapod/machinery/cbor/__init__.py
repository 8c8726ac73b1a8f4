"""The media type `application/cbor`: conversion between objects in JSON form and CBOR, as upstream's serializer does.

Endpoints, discovery and the storage of custom resources call this package, which is imported at the first use.
- `encoding` writes a value, with its first bytes `MAGIC`.
- `decoding` reads a body or a stored value, with the error texts of upstream's decoder.
- `diagnostic` writes a body in diagnostic notation, for error texts.
- `wellformed` checks a body without decoding it.
- `typed` reads a body as an object of a built-in kind.

No library is used: see "Built here although a library exists" in CONTRIBUTING.md.
Upstream: k8s.io/apimachinery/pkg/runtime/serializer/cbor; github.com/fxamacker/cbor
"""

from __future__ import annotations

from tetrapod.machinery.cbor.decoding import InvalidError, MalformedError, decode
from tetrapod.machinery.cbor.encoding import MAGIC, encode, event, members, rotated, shuffled

__all__ = ["MAGIC", "InvalidError", "MalformedError", "decode", "encode", "event", "members", "rotated", "shuffled"]
