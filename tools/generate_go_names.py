"""Write the names that Go gives to types of fields, read from Go's sources.

The output is `services/tetrapod/machinery/types/data/go_names.json`.

    PYTHONPATH=services python tools/generate_go_names.py FOLDER

FOLDER holds the modules k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator as the Go module cache
lays them out. OpenAPI has `string` where the source has `v1.TaintEffect`; the decoder's errors name the latter. For
each field of a definition and each level of its type, the output maps the plain form (`map[string][]string`) to its
name in Go. The key "" lists the structs that embed the field.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

from tetrapod.machinery.schema.decode_scalars import go_type
from tetrapod.machinery.schema_node import SchemaNode
from tetrapod.machinery.types import definitions

OUTPUT = Path(__file__).parent.parent / "services/tetrapod/machinery/types/data/go_names.json"
MODULES = ("api", "apimachinery", "apiextensions-apiserver", "kube-aggregator")
STRUCT = re.compile(r"^type (\w+) struct \{$(.*?)^\}$", re.M | re.S)
NAMED = re.compile(r"^(?:type |\t)(\w+) (?:= )?((?:\[\]|map\[[\w.]+\]|\*)*[\w.]+)$", re.M)
IMPORT = re.compile(r'^\s*(?:import )?(\w+)? ?"([\w./-]+)"$', re.M)
FIELD = re.compile(r'^\t(?:(\w+) )?([\w.\[\]*]+)\s+`json:"([\w$-]*)(?:,(\w+))?', re.M)
BASIC = frozenset({"string", "bool", "int", "int32", "int64", "byte", "float64", "any"})

Package: TypeAlias = str
"""An import path such as `k8s.io/api/core/v1`."""


class Sources:
    """The types of Go packages, parsed with regular expressions, which suffice for the API's own files."""

    def __init__(self, root: Path) -> None:
        self._folders = {f"k8s.io/{name}": max(root.glob(f"{name}@*")) for name in MODULES}
        self.struct = cache(self._struct)
        self._files = cache(self._read)

    def _read(self, package: Package) -> list[str]:
        module = "/".join(package.split("/")[:2])
        if module not in self._folders:
            return []
        folder = self._folders[module] / package.removeprefix(module).strip("/")
        files = (
            f
            for f in sorted(folder.glob("*.go"))
            if not f.name.startswith(("zz_", "generated")) and "_test" not in f.name
        )
        return [re.sub(r"[ \t]*//.*", "", f.read_text()) for f in files]

    def texts(self, package: Package) -> list[str]:
        """Return the sources of a package without comments, tests and generated files."""
        return self._files(package)

    def _struct(self, package: Package, name: str) -> dict[str, tuple[str, str]]:
        """Return the JSON names of the fields with their types and the structs that embed them.

        `RuleWithOperations.Rule` is such a struct, for example.
        """
        found: dict[str, tuple[str, str]] = {}
        for text in self._files(package):
            for match in STRUCT.finditer(text):
                if match[1] != name:
                    continue
                for _, type_, json_name, option in FIELD.findall(re.sub(r" +", " ", match[2])):
                    if json_name and json_name != "-":
                        found[json_name] = ("", self.absolute(text, package, type_))
                    elif option == "inline" or not json_name:
                        inner, _, embedded = self.absolute(text, package, type_).lstrip("*").rpartition(".")
                        for field, (path, its_type) in self.struct(inner, embedded).items():
                            found.setdefault(field, (f"{embedded}.{path}".rstrip("."), its_type))
        other = None if found else self.underlying(package, name)
        if other is not None and "/" in other:  # type MatchCondition v1.MatchCondition
            inner, _, its_name = other.rpartition(".")
            return self.struct(inner, its_name)
        return found

    def underlying(self, package: Package, name: str) -> str | None:
        for text in self._files(package):
            for match in NAMED.finditer(text):
                if match[1] == name and match[0].startswith("type "):
                    return self.absolute(text, package, match[2])
        return None

    def absolute(self, text: str, package: Package, type_: str) -> str:
        """Return the type with import paths in place of package names: `[]k8s.io/api/core/v1.Pod`."""
        imports = {alias or path.rpartition("/")[2]: path for alias, path in IMPORT.findall(text)}

        def name(match: re.Match[str]) -> str:
            word = match[0]
            if word in BASIC or word == "map":
                return word
            if "." in word:
                alias, _, rest = word.partition(".")
                return f"{imports.get(alias, alias)}.{rest}"
            return f"{package}.{word}"

        return re.sub(r"[\w.]+", name, type_)


def short(type_: str) -> str:
    """Return the type as Go prints it, with only the last element of the import path."""
    return re.sub(r"[\w.-]+(?:/[\w.-]+)*/(?=[\w-]+\.)", "", type_).replace("byte", "uint8")


def levels(sources: Sources, node: SchemaNode, type_: str) -> Iterator[tuple[str, str]]:
    """Yield the plain name and Go's name of a type, then those of its elements, and so on."""
    type_ = type_.lstrip("*")
    if node.properties or (node.definition and node.type != "array" and not node.additional_properties):
        return
    yield go_type(node), short(type_)
    if not type_.startswith(("[]", "map[")):
        package, _, name = type_.rpartition(".")
        inner = sources.underlying(package, name) if package else None
        if inner is None:
            return
        type_ = inner
    if node.items is not None and type_.startswith("[]"):
        yield from levels(sources, node.items, type_[2:])
    elif node.additional_properties is not None and type_.startswith("map["):
        yield from levels(sources, node.additional_properties, type_.partition("]")[2])


def package_of(definition: str) -> tuple[Package, str]:
    path, _, name = definition.rpartition(".")
    return "k8s.io/" + path.removeprefix("io.k8s.").replace(".", "/"), name


def main(root: Path) -> None:
    sources = Sources(root)
    found: dict[str, dict[str, dict[str, str]]] = {}
    for definition in definitions.names():
        fields = sources.struct(*package_of(definition))
        for name, child in definitions.load(definition).properties.items():
            if name not in fields:
                print("no field", definition, name)
                continue
            embedded, type_ = fields[name]
            names = {plain: go for plain, go in levels(sources, child, type_) if plain != go}
            if embedded and embedded != "TypeMeta":  # the decoder reads an object's kind before the object
                names[""] = embedded
            if names:
                found.setdefault(definition, {})[name] = names
    OUTPUT.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
