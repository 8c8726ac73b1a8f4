"""Decoding and encoding of YAML bodies, as sigs.k8s.io/yaml does it.

Most bodies that clients send as YAML are JSON and need no YAML parser (yaml_flow.py). All others are decoded by
yaml_events.py. Encoding is in yaml_output.py.
"""

from __future__ import annotations

from tetrapod.machinery.error_limits import more, recorded
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer import yaml_flow as flow
from tetrapod.machinery.serializer.errors import Decoded


def decode(data: bytes) -> Decoded:
    """Decode the first document of a YAML body. An empty body is null.

    Duplicate fields are reported as `line 6: key "k" already set in map`.

    Raises:
        DecodeError: the body is not YAML, or has values that JSON cannot express.
    """
    plain = flow.decode(data)
    if plain is not None:
        return Decoded(plain, [])
    from tetrapod.machinery.serializer import yaml_events

    return yaml_events.decode(data)


def strict_text(duplicates: list[str]) -> str:
    """Return the text of the strict decoding error for duplicate keys.

    Args:
        duplicates: the texts of `Decoded.duplicates`, one for each duplicate key. Warnings have the same texts, one
            each.
    """
    texts, left_out = recorded(duplicates)
    return "yaml: unmarshal errors:\n  " + "\n  ".join([*texts, more(left_out)] if left_out else texts)


def encode(obj: Object) -> bytes:
    """Encode an object as block-style YAML, with its keys in go-yaml's order."""
    from tetrapod.machinery.serializer import yaml_output

    return yaml_output.encode(obj)
