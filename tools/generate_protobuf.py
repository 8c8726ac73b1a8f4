"""Write the wire numbers of the built-in messages (`services/tetrapod/machinery/protobuf/data/`).

    python tools/generate_protobuf.py FACTS

FACTS has `protobuf.json`: message → field → [number, type, label], as in upstream's generated.proto files. The output
has a file for each package with a line for each message that a served kind can reach: its name, a space, and number →
[JSON name, type, label] as JSON. Types of the same package begin with a dot. Embedded Go structs are messages on the
wire but not in JSON; their label is `inline`.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parent.parent / "services"))

from tetrapod.machinery.types import definitions

OUTPUT = Path(__file__).parent.parent / "services/tetrapod/machinery/protobuf/data"
SCALARS = ("string", "bytes", "bool", "int32", "int64", "double")
RENAMED = {"ref": "$ref", "schema": "$schema"}  # of JSONSchemaProps, whose extension fields begin with x

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
ROOTS = (
    *(
        META + kind
        for kind in (
            "APIGroupList",
            "APIResourceList",
            "APIVersions",
            "PartialObjectMetadataList",
            "Status",
            "WatchEvent",
        )
    ),
    "io.k8s.apimachinery.pkg.apis.meta.v1beta1.PartialObjectMetadataList",
    "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList",
    "io.k8s.apimachinery.pkg.runtime.Unknown",
    "io.k8s.api.core.v1.RangeAllocation",
)
"""Types of responses and of stored values that OpenAPI does not define."""

Field: TypeAlias = tuple[str, str, str]


def definition_of(message: str) -> str:
    return message.replace("k8s.io.", "io.k8s.", 1).replace("_", "-")


def properties_of(definition: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = definitions.raw(definition).get("properties", {})
    except KeyError:
        return {}
    return found


def json_name(name: str, properties: dict[str, Any]) -> str:
    """Return the JSON name of a field, or "" if JSON has no such field."""
    if not properties or name in properties:
        return name
    spelled = {p.replace("-", "").lower(): p for p in properties}
    return spelled.get(name.lower()) or (RENAMED[name] if RENAMED.get(name) in properties else "")


def fields_of(message: str, facts: dict[str, Any]) -> dict[int, Field]:
    properties = properties_of(definition_of(message))
    found: dict[int, Field] = {}
    for name, (number, type_, label) in facts[message].items():
        spelled = json_name(name, properties)
        if type_.startswith("map<"):
            type_, label = type_.removeprefix("map<string,").removesuffix(">"), "map"
        inlined = not spelled
        assert not inlined or (type_ not in SCALARS and not label), (message, name)
        type_ = type_ if type_ in SCALARS else definition_of(type_)
        found[number] = (spelled, type_, "inline" if inlined else label)
    return found


def main(facts: Path) -> None:
    messages: dict[str, Any] = json.loads((facts / "protobuf.json").read_text())
    by_definition = {definition_of(message): message for message in messages}
    waiting = [name for name in (*definitions.names(), *ROOTS) if name in by_definition]
    found: dict[str, dict[int, Field]] = {}
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = fields_of(by_definition[name], messages)
            waiting += [type_ for _, type_, _ in found[name].values() if type_ in by_definition]
    packages: dict[str, list[str]] = defaultdict(list)
    for name, fields in sorted(found.items()):
        package, _, short = name.rpartition(".")
        local = {number: (spelled, within(package, type_), label) for number, (spelled, type_, label) in fields.items()}
        packages[package].append(f"{short} {json.dumps(local, separators=(',', ':'))}\n")
    for package, lines in packages.items():
        (OUTPUT / f"{package}.messages").write_text("".join(lines))


def within(package: str, type_: str) -> str:
    prefix, _, short = type_.rpartition(".")
    return "." + short if prefix == package else type_


if __name__ == "__main__":
    main(Path(sys.argv[1]))
