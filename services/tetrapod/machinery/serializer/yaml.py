"""YAML bodies to objects and objects to YAML, as sigs.k8s.io/yaml does.

Most of what is sent as YAML is JSON, which needs no parser of YAML (yaml_flow.py); the rest is
yaml_events.py's. What is written is yaml_output.py's.
"""

from __future__ import annotations

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.serializer import yaml_flow as flow
from tetrapod.machinery.serializer.errors import Decoded


def decode(data: bytes) -> Decoded:
    """Decode the first document; an empty body is null. Duplicates are texts like `line 6: key "k" already set in map`.

    Raises:
        DecodeError: not YAML, or nothing that JSON can express.
    """
    plain = flow.decode(data)
    if plain is not None:
        return Decoded(plain, [])
    from tetrapod.machinery.serializer import yaml_events

    return yaml_events.decode(data)


def strict_text(duplicates: list[str]) -> str:
    """Duplicate keys as the strict decoding error says them; warnings are the single texts."""
    return "yaml: unmarshal errors:\n  " + "\n  ".join(duplicates)


def encode(obj: Object) -> bytes:
    """An object as block-style YAML, its keys in go-yaml's order."""
    from tetrapod.machinery.serializer import yaml_output

    return yaml_output.encode(obj)
