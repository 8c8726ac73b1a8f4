"""How Go encodes the fields of API types, read from Go's sources, for types that `go_types.py` does not list."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "services"))

from generate_go_names import STRUCT, Package, Sources, package_of

_FIELD = re.compile(r'^\t(?:\w+ )?([\w.\[\]*]+)\s+`json:"([\w$-]*)((?:,\w+)*)"', re.M)


class GoFields:
    """The fields of the structs of Go's modules.

    Args:
        root: the folder of the modules k8s.io/api and apimachinery, as the Go module cache lays them out.
    """

    def __init__(self, root: Path) -> None:
        self._sources = Sources(root)
        self._struct = cache(self._read)

    def _read(self, package: Package, name: str) -> dict[str, tuple[str, list[str]]]:
        """Return type and tag options of each field by its JSON name, also of embedded structs."""
        found: dict[str, tuple[str, list[str]]] = {}
        for text in self._sources.texts(package):
            for match in STRUCT.finditer(text):
                if match[1] != name:
                    continue
                for type_, json_name, options in _FIELD.findall(re.sub(r" +", " ", match[2])):
                    go_type = self._sources.absolute(text, package, type_)
                    if json_name and json_name != "-":
                        found[json_name] = (go_type, options.split(","))
                    elif not json_name:
                        inner, _, embedded = go_type.lstrip("*").rpartition(".")
                        for field, facts in self._struct(inner, embedded).items():
                            found.setdefault(field, facts)
        other = None if found else self._sources.underlying(package, name)
        if other is not None and "/" in other:  # type MatchCondition v1.MatchCondition
            inner, _, its_name = other.rpartition(".")
            return self._struct(inner, its_name)
        return found

    def presence(self, definition: str, name: str, schema: dict[str, Any]) -> str:
        """Return the mark of how Go encodes a field (`SchemaNode.presence`).

        Args:
            definition: the definition, such as "io.k8s.api.resource.v1beta1.Device".
            name: the JSON name of the field.
            schema: the schema of the field in the form of `.types` files.
        """
        go_type, options = self._struct(*package_of(definition))[name]
        optional = "omitempty" in options or "omitzero" in options
        if go_type.startswith("*"):
            return "*" if optional else "n"
        if "$ref" in schema:
            return "0" if "omitzero" in options else "="
        nullable = schema.get("type") in ("array", "object") or schema.get("format") == "byte"
        return "" if optional else "n" if nullable else "="
