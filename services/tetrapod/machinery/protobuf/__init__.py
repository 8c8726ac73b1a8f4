"""The `application/vnd.kubernetes.protobuf` media type: objects in JSON form to and from upstream's messages. Pure.

The messages are data (data/*.messages, written by tools/generate_protobuf.py): `messages` reads them, `encoding` and `decoding`
compile each to closures when a value of it first comes by, `special` knows the types whose JSON is not their message's,
`envelope` puts what they make into runtime.Unknown, lists and watch frames. Endpoints and discovery are the callers.
Follows k8s.io/apimachinery/pkg/runtime/serializer/protobuf and the code that gogo generates.
"""

from __future__ import annotations

from tetrapod.machinery.protobuf.decoding import MAGIC, decode
from tetrapod.machinery.protobuf.encoding import item
from tetrapod.machinery.protobuf.envelope import encode, envelope, frame, list_parts
from tetrapod.machinery.protobuf.messages import UnknownMessageError, message_of
from tetrapod.machinery.serializer.errors import DecodeError

__all__ = ["MAGIC", "DecodeError", "UnknownMessageError", "decode", "encode", "envelope", "frame", "item", "list_parts", "message_of"]
