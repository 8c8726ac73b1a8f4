"""Every cache that outlives a request is bounded, and SECURITY.md lists those whose keys clients choose."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path(__file__).parents[2]
_SERVICES: Final = _ROOT / "services" / "tetrapod"
_FEW: Final = {
    "cli/flags.py flags_of": "the programs of this project",
    "core/controllers/discovered.py _verbs": "sets of verbs in the discovery of this cluster, 64 of them",
    "core/flowcontrol/flow_schemas.py _mandatory": "names of two resources",
    "generic/admission/policy/environment.py admission_environment": "eight combinations of three switches",
    "generic/client/partial_decoding.py _list_decoder": "classes in the code",
    "generic/endpoints/tables.py _decoder_of": "classes in the code",
    "core/resource/device_selectors.py _environment": "two booleans",
    "generic/client/partial_decoding.py _event_decoder": "classes in the code",
    "generic/configuration/feature_gates.py _gates_of": "the releases that can be emulated, four of them",
    "generic/endpoints/quoted_objects.py _fields": "built-in definitions",
    "generic/openapi/custom.py _texts": "built-in definitions",
    "generic/proxy/balanced_pool.py _endpoint": "addresses of replicas of services, as flags name them",
    "generic/registry/builtin.py _facts": "built-in groups and versions",
    "generic/rpc/headers.py request_block": "methods of etcd and of KMS plugins, with tokens of etcd: 256 of them",
    "generic/storage/etcd/connection.py progress_reliable": "versions of the members of etcd",
    "machinery/cel/antlr.py _automaton": "names of two grammars",
    "machinery/cel/library/registry.py _dispatcher": (
        "functions of the libraries; another name is an exception, which is not stored"
    ),
    "machinery/cel/overloads.py parse_type": "types in a file of the package",
    "machinery/protobuf/decoding.py _reader": "messages of built-in kinds",
    "machinery/protobuf/encoding.py body": "messages of built-in kinds",
    "machinery/protobuf/messages.py fields": (
        "messages of built-in kinds; another name is an exception, which is not stored"
    ),
    "machinery/protobuf/messages.py _package": (
        "packages of built-in kinds; another name is an exception, which is not stored"
    ),
    "machinery/protobuf/messages.py message_of": "built-in kinds; another name is an exception, which is not stored",
    "machinery/timestamps.py format_seconds": "seconds of the clock, four of them",
    "machinery/types/definitions.py load": "built-in definitions; another name is an exception, which is not stored",
    "machinery/types/definitions.py schema_for": "built-in kinds; another name is an exception, which is not stored",
    "machinery/types/definitions.py _package": (
        "packages of built-in definitions; another name is an exception, which is not stored"
    ),
    "machinery/types/definitions.py _lazy": "built-in definitions",
}
_UNBOUNDED: Final = frozenset({"cache", "lru_cache"})
_BOUNDED: Final = frozenset({"bounded", "BoundedCache", "ExpiringCache"})
_DEFAULTS: Final = {"limit": 8192, "size": 16 << 20}


class Cache(NamedTuple):
    name: str
    call: ast.expr
    constants: dict[str, int]

    def bound(self, *keywords: str) -> int:
        """Return the value of the first of these arguments that is given, or its default."""
        given = {k.arg: k.value for k in self.call.keywords} if isinstance(self.call, ast.Call) else {}
        found = next((given[keyword] for keyword in keywords if keyword in given), None)
        scope = {**self.constants, **_DEFAULTS}
        if found is None:
            return _DEFAULTS[keywords[-1]]
        return int(eval(compile(ast.Expression(found), "", "eval"), {}, scope))


def _called(node: ast.expr) -> str:
    """Return the name of the called function: `functools.lru_cache(1)`, `BoundedCache[str, int]()` and `cache`
    alike.
    """
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _calls(names: frozenset[str]) -> Iterator[Cache]:
    """Yield each use of one of these as a decorator or in an assignment, by its file and name."""
    for file in sorted(_SERVICES.rglob("*.py")):
        source = file.read_text()
        if not any(name in source for name in names):
            continue
        tree = ast.parse(source)
        constants = {
            node.target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(node.value, ast.Constant)
            if isinstance(node.value.value, int)
        }
        for name, call in _uses(tree, "", names):
            yield Cache(f"{file.relative_to(_SERVICES)} {name}", call, constants)


def _uses(parent: ast.AST, owner: str, names: frozenset[str]) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            few = names == _UNBOUNDED and not node.args.args
            yield from ((node.name, d) for d in node.decorator_list if _called(d) in names and not few)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            calls = (call for call in ast.walk(node.value) if isinstance(call, ast.Call) and _called(call) in names)
            yield from ((target.replace("self.", f"{owner}."), call) for call in calls)
        yield from _uses(node, node.name if isinstance(node, ast.ClassDef) else owner, names)


def _listed() -> dict[str, tuple[int, int]]:
    """Return the rows of the table in SECURITY.md: the most entries and bytes of each cache."""
    units = {"KiB": 1 << 10, "MiB": 1 << 20}
    rows = re.findall(
        r"(?m)^\| `(\S+\.py)` `(\S+)` \|[^|]*\| ([0-9,]+) \| ([0-9]+) (KiB|MiB) \|$",
        (_ROOT / "SECURITY.md").read_text(),
    )
    return {
        f"{file} {name}": (int(count.replace(",", "")), int(size) * units[unit])
        for file, name, count, size, unit in rows
    }


def test_functions_are_cached_without_a_bound_in_bytes_only_where_their_arguments_are_few() -> None:
    used = {cache.name for cache in _calls(_UNBOUNDED)}
    assert used - _FEW.keys() == set(), (
        "use `bounded` of machinery/boundedcache.py if arguments come from requests; else list it here"
    )
    assert _FEW.keys() - used == set(), "is listed here, but there no longer"


def test_security_lists_every_cache_of_input_with_its_bounds() -> None:
    bounds = {cache.name: (cache.bound("count", "limit"), cache.bound("size")) for cache in _calls(_BOUNDED)}
    assert bounds == _listed()
