"""Write the committed facts of the built-in types from a server's OpenAPI and discovery.

    python tools/generate_types.py MODULES FACTS ALL…

FACTS and ALL are folders that `record_facts.py` has written: FACTS with the documents of a server with default flags,
ALL with those of servers that serve all group-versions, of this release and with --emulated-version. MODULES holds the
modules k8s.io/api and apimachinery as the Go module cache lays them out. The output, in
`services/tetrapod/machinery/types/data/`, has two kinds of file:

- `PACKAGE.types`, one for each Go package, has a line for each definition: its name, a space, its schema as JSON.
- `resources.json` has the discovery data of each resource, in `optional` those of group-versions that are off by
  default.

`go_types.py` adds facts that OpenAPI lacks, `go_presence.py` those of the packages that only ALL has.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from go_presence import GoFields
from go_types import NOT_NULLS, NULLS, OMIT_EMPTY, OMIT_ZERO, POINTERS, VALUES, table

OUTPUT = Path(__file__).parent.parent / "services/tetrapod/machinery/types/data"
REF = "#/components/schemas/"
SPECIAL = ("Time", "MicroTime", "Quantity", "IntOrString", "RawExtension", "FieldsV1", "JSON")
ZEROS = ("", 0, False)
EVERYWHERE = ("DeleteOptions", "WatchEvent")

pointers, values, nulls, not_nulls = (table(t) for t in (POINTERS, VALUES, NULLS, NOT_NULLS))
omit_empty, omit_zero = table(OMIT_EMPTY), table(OMIT_ZERO)


def compact(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with each reference replaced by `$ref: name` beside its siblings.

    `b` marks fields whose reference has no `allOf` around it.
    """
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$ref":
            found["$ref"] = value.removeprefix(REF)
        elif key == "allOf":
            assert len(value) == 1, value
            found["$ref"] = value[0]["$ref"].removeprefix(REF)
        elif key in ("items", "additionalProperties"):
            found[key] = compact(value)
        elif key == "properties":
            found[key] = {name: compact(child) for name, child in value.items()}
        else:
            found[key] = value
    return found


def presence(definition: str, name: str, schema: dict[str, Any], required: bool) -> str:
    """Return the mark of how Go encodes the field.

    The marks are "" (omitempty), "*" (if given), "=" (always), "0" (struct unless zero) and "n" (null if empty).
    """
    short = ".".join(definition.split(".")[-3:])
    if name in nulls.get(short, ()):
        return "n"
    ref = schema.get("$ref", "").rpartition(".")[2]
    if ref in SPECIAL:
        return "=" if name in values.get(short, ()) else "*"
    if ref:
        if name in omit_zero.get(short, ()):
            return "0"
        return "=" if schema.get("default") == {} else "*"
    if schema.get("type") in ("array", "object"):
        return "n" if required and name not in not_nulls.get(short, ()) else ""
    if name in pointers.get(short, ()):
        return "*"
    if name in omit_empty.get(short, ()):
        return ""
    return "=" if any(schema.get("default") is zero or schema.get("default") == zero for zero in ZEROS) else ""


def definitions(*folders: Path) -> dict[str, dict[str, Any]]:
    """Return every definition in the folders' documents.

    Kinds that every group-version has (DeleteOptions, WatchEvent) have other group-version-kinds in each document.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in (path for folder in folders for path in sorted((folder / "openapi-v3").glob("*.json"))):
        for name, schema in json.loads(path.read_text()).get("components", {}).get("schemas", {}).items():
            if name.rpartition(".")[2] in EVERYWHERE:
                schema["x-kubernetes-group-version-kind"] = schema["x-kubernetes-group-version-kind"][:1]
            assert found.setdefault(name, schema) == schema, name
    return found


def write_definitions(facts: Path, optional: list[Path], fields: GoFields) -> None:
    by_default = definitions(facts)
    found = definitions(facts, *optional)
    packages: dict[str, list[str]] = defaultdict(list)
    for name, schema in sorted(found.items()):
        package, _, short = name.rpartition(".")
        small = compact(schema)
        required = small.get("required", [])
        for field, child in small.get("properties", {}).items():
            if "$ref" in schema["properties"][field]:
                child["b"] = 1
            code = (
                presence(name, field, child, field in required)
                if name in by_default
                else fields.presence(name, field, child)
            )
            if code:
                child["p"] = code
        packages[package].append(f"{short} {json.dumps(small, separators=(',', ':'), sort_keys=True)}\n")
    for package, lines in packages.items():
        (OUTPUT / f"{package}.types").write_text("".join(lines))


def write_kinds(*folders: Path) -> None:
    """Write the definition of each kind; kinds that every group-version has are under "*"."""
    kinds: dict[str, dict[str, str]] = defaultdict(dict)
    for name, schema in sorted(definitions(*folders).items()):
        for gvk in schema.get("x-kubernetes-group-version-kind", []):
            api_version = "/".join(filter(None, (gvk["group"], gvk["version"])))
            kinds["*" if gvk["kind"] in EVERYWHERE else api_version][gvk["kind"]] = name
    text = json.dumps(kinds, separators=(",", ":"), sort_keys=True).replace("},", "},\n")
    (OUTPUT / "kinds.json").write_text(text + "\n")


def write_resources(facts: Path, optional: list[Path]) -> None:
    """Write the groups in discovery order with their versions, and the discovery data of each resource."""
    by_default = {entry["group"]: entry["versions"] for entry in groups_of(facts / "discovery")}
    entries = []
    for entry in groups_of(optional[0] / "discovery"):
        on = by_default.get(entry["group"], {})
        off: dict[str, Any] = {}
        for other in (other for folder in optional for other in groups_of(folder / "discovery")):
            for version, listed in other["versions"].items() if other["group"] == entry["group"] else ():
                if version not in on:
                    off.setdefault(version, listed)
        entries.append({"group": entry["group"], "versions": on} | ({"optional": off} if off else {}))
    text = json.dumps(entries, separators=(",", ":")).replace('{"group"', '\n{"group"').replace('{"name"', '\n{"name"')
    (OUTPUT / "resources.json").write_text(text + "\n")


def groups_of(folder: Path) -> list[dict[str, Any]]:
    """Return the groups in discovery order with their versions and the discovery data of each resource.

    The data of a resource come from both discovery formats.
    """
    groups: list[dict[str, Any]] = [{"metadata": {"name": ""}, "versions": [{"version": "v1"}]}]
    aggregated: dict[tuple[str, str, str], Any] = {}
    for name in ("aggregated-api", "aggregated-apis"):
        items = json.loads((folder / f"{name}.json").read_text())["items"]
        groups += items if name.endswith("s") else []
        for item in items:
            for version in item["versions"]:
                for resource in version["resources"]:
                    aggregated[item["metadata"].get("name", ""), version["version"], resource["resource"]] = resource
    out = []
    for group in groups:
        name = group["metadata"].get("name", "")
        versions = {}
        for version in (v["version"] for v in group["versions"]):
            file = f"apis.{name}.{version}.json" if name else f"api.{version}.json"
            versions[version] = resources(json.loads((folder / file).read_text())["resources"])
            check(versions[version], {k[2]: r for k, r in aggregated.items() if k[:2] == (name, version)})
        out.append({"group": name, "versions": versions})
    return out


def resources(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    keep: tuple[str, ...]
    for item in listed:
        name, _, subresource = item["name"].partition("/")
        if subresource:
            keep = ("kind", "group", "version", "verbs", "namespaced")
            entry = {"name": subresource, **{k: item[k] for k in keep if k in item}}
            if name in found:
                found[name]["subresources"].append(entry)
            else:
                found[name] = {"name": name, "subresources": [entry], "virtual": True}
            continue
        keep = (
            "singularName",
            "namespaced",
            "kind",
            "group",
            "version",
            "verbs",
            "shortNames",
            "categories",
            "storageVersionHash",
        )
        found[name] = {"name": name, **{k: item[k] for k in keep if k in item}, "subresources": []}
    return list(found.values())


def check(listed: list[dict[str, Any]], aggregated: dict[str, dict[str, Any]]) -> None:
    """Check that the two discovery formats agree."""
    assert [r["name"] for r in listed] == list(aggregated), (listed, list(aggregated))
    for resource in listed:
        other = aggregated[resource["name"]]
        assert resource.get("verbs", []) == other.get("verbs", []), other
        names = [s["name"] for s in resource["subresources"]]
        assert names == [s["subresource"] for s in other.get("subresources", [])], other


def main() -> None:
    if len(sys.argv) < 4 or not all((Path(folder) / "discovery").is_dir() for folder in sys.argv[2:]):
        sys.exit("usage: generate_types.py MODULES FACTS ALL…; nothing was changed")
    modules, facts, *optional = (Path(argument) for argument in sys.argv[1:])
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for old in OUTPUT.glob("*.types"):
        old.unlink()
    write_definitions(facts, optional, GoFields(modules))
    write_kinds(facts, *optional)
    write_resources(facts, optional)


if __name__ == "__main__":
    main()
