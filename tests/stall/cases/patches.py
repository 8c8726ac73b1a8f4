"""Patches of every type, of ConfigMaps, custom resources, Deployments and Pods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import orjson

from stall.case import BODY, Case
from stall.client import Client
from stall.message import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Message
from stall.setup import GADGETS, MAPS, SPACE, WIDGETS
from stall.shuffled import shuffled

DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/stall/deployments"
SERVICES: Final = f"{SPACE}/services"
_LABELS: Final = {"app": "a"}

Preparation = Callable[[Client, int], Awaitable[None]]


def _stored(path: str, name: str, body: Callable[[int], dict[str, Any]]) -> Preparation:
    """Return a preparation that replaces the stored object by one of `n` elements."""

    async def prepare(admin: Client, n: int) -> None:
        await admin.ask("DELETE", f"{path}/{name}")
        kind = {"apiVersion": "stall.example.com/v1", "kind": "Widget"} if path == WIDGETS else {}
        outcome = await admin.ask("POST", path, {**kind, "metadata": {"name": name}, **body(n)})
        assert outcome.status == 201, (path, outcome.status, outcome.body)

    return prepare


def _patch(
    name: str,
    path: str,
    media_type: str,
    body: Callable[[int], Any],
    prepare: Preparation,
    who: str = "user",
    limit: int = BODY,
    most: int = 10_000_000,
) -> Case:
    def message(n: int) -> Message:
        return Message("PATCH", path, body=orjson.dumps(body(n)), media_type=media_type)

    return Case(f"{name}", who, message, limit, most, prepare)


def _json_patch(name: str, op: Callable[[int, int], dict[str, Any]], prepare: Preparation) -> Case:
    path = f"{WIDGETS}/w?dryRun=All"
    return _patch(f"JSON patch: {name}", path, JSON_PATCH, lambda n: [op(i, n) for i in range(n)], prepare, most=9_990)


_LIST: Final = _stored(WIDGETS, "w", lambda n: {"x": [0] * 500_000, "y": {"a": 1}})
_MAP: Final = _stored(WIDGETS, "w", lambda n: {"x": {f"k{i}": i for i in range(40_000)}, "y": {"a": 1}})
_SMALL: Final = _stored(WIDGETS, "w", lambda n: {"x": [0], "y": {"a": 1}})


def _deep(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


_DEEP: Final = _stored(WIDGETS, "w", lambda n: {"y": _deep(190)})


def _pod(**more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", **more}]}


def _deployment(**more: Any) -> dict[str, Any]:
    return {
        "spec": {
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": _pod(**more)},
        }
    }


def _template(container: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", **container}]}}}}


_PLAIN: Final = _stored(DEPLOYMENTS, "d", lambda n: _deployment())
_ENV: Final = _stored(
    DEPLOYMENTS, "d", lambda n: _deployment(env=[{"name": f"e{i}", "value": "a"} for i in range(min(n, 20_000))])
)
_PORTS: Final = _stored(
    SERVICES, "s", lambda n: {"spec": {"ports": [{"port": i + 1, "name": f"p{i}"} for i in range(min(n, 5_000))]}}
)
_CONFIG: Final = _stored(MAPS, "patched", lambda n: {"data": {f"k{i}": "v" for i in range(min(n, 40_000))}})


def _strategic(
    name: str, body: Callable[[int], Any], prepare: Preparation = _PLAIN, path: str = f"{DEPLOYMENTS}/d"
) -> Case:
    return _patch(f"strategic merge patch: {name}", f"{path}?dryRun=All", STRATEGIC_PATCH, body, prepare, "editor")


def _apply(name: str, path: str, head: dict[str, Any], body: Callable[[int], Any], who: str = "user") -> Case:
    def message(n: int) -> Message:
        query = "fieldManager=m&force=true&dryRun=All"
        return Message("PATCH", f"{path}/applied?{query}", body=orjson.dumps({**head, **body(n)}), media_type=APPLY)

    return Case(f"apply: {name}", who, message, BODY)


_AS_MAP: Final = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}}
_AS_DEPLOYMENT: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "applied"}}
_AS_GADGET: Final = {"apiVersion": "stall.example.com/v1", "kind": "Gadget", "metadata": {"name": "applied"}}
_AS_WIDGET: Final = {**_AS_GADGET, "kind": "Widget"}


async def _managed(admin: Client, n: int) -> None:
    """Apply a ConfigMap by a hundred managers."""
    await admin.ask("DELETE", f"{MAPS}/applied")
    for number in range(100):
        body = orjson.dumps({**_AS_MAP, "data": {f"m{number}k{i}": "v" for i in range(min(n, 20_000) // 100)}})
        await admin.send([Message("PATCH", f"{MAPS}/applied?fieldManager=m{number}", body=body, media_type=APPLY)])


def _update(name: str, path: str, body: Callable[[int], dict[str, Any]], prepare: Preparation) -> Case:
    def message(n: int) -> Message:
        return Message("PUT", f"{path}?dryRun=All", body=orjson.dumps(body(n)))

    return Case(f"update: {name}", "user", message, BODY, prepare=prepare)


CASES: Final = [
    _update(
        "entries",
        f"{MAPS}/patched",
        lambda n: {"metadata": {"name": "patched"}, "data": {f"n{i}": "v" for i in range(n)}},
        _CONFIG,
    ),
    _update(
        "entries in another order",
        f"{MAPS}/patched",
        lambda n: {"metadata": {"name": "patched"}, "data": dict.fromkeys(shuffled("k#", n), "v")},
        _CONFIG,
    ),
    _update(
        "nested",
        f"{WIDGETS}/w",
        lambda n: {**_AS_WIDGET, "metadata": {"name": "w", "resourceVersion": "1"}, "y": [_deep(90) for _ in range(n)]},
        _SMALL,
    ),
    _json_patch("add at the head of a long list", lambda i, n: {"op": "add", "path": "/x/0", "value": 0}, _LIST),
    _json_patch("remove the head of a long list", lambda i, n: {"op": "remove", "path": "/x/0"}, _LIST),
    _json_patch("copy a long list", lambda i, n: {"op": "copy", "from": "/x", "path": f"/z{i}"}, _LIST),
    _json_patch(
        "move a long list",
        lambda i, n: {"op": "move", "from": "/x" if i % 2 == 0 else "/z", "path": "/z" if i % 2 == 0 else "/x"},
        _LIST,
    ),
    _json_patch("move inside a long list", lambda i, n: {"op": "move", "from": "/x/0", "path": "/x/499999"}, _LIST),
    _json_patch("test a long list", lambda i, n: {"op": "test", "path": "/x", "value": []}, _LIST),
    _json_patch("replace in a long list", lambda i, n: {"op": "replace", "path": f"/x/{i}", "value": 1}, _LIST),
    _json_patch("copy what was copied", lambda i, n: {"op": "copy", "from": "/y", "path": "/y/b"}, _SMALL),
    _json_patch("add to a map", lambda i, n: {"op": "add", "path": f"/x/n{i}", "value": 0}, _MAP),
    _json_patch("move in a map", lambda i, n: {"op": "move", "from": f"/x/k{i}", "path": f"/x/m{i}"}, _MAP),
    _json_patch("deep paths", lambda i, n: {"op": "add", "path": "/y" + "/a" * 900, "value": 1}, _DEEP),
    _json_patch("long paths", lambda i, n: {"op": "add", "path": "/y/" + "~1" * 100 + str(i), "value": 1}, _SMALL),
    _patch(
        "JSON patch: test a long list for equality",
        f"{WIDGETS}/w?dryRun=All",
        JSON_PATCH,
        lambda n: [{"op": "test", "path": "/x", "value": [0] * n}],
        _LIST,
    ),
    _patch(
        "JSON patch: too many operations",
        f"{WIDGETS}/w",
        JSON_PATCH,
        lambda n: [{"op": "add", "path": "/z", "value": 0}] * n,
        _SMALL,
    ),
    _patch(
        "merge patch: entries",
        f"{MAPS}/patched?dryRun=All",
        MERGE_PATCH,
        lambda n: {"data": {f"n{i}": "v" for i in range(n)}},
        _CONFIG,
    ),
    _patch(
        "merge patch: nulls",
        f"{MAPS}/patched?dryRun=All",
        MERGE_PATCH,
        lambda n: {"data": {f"k{i}": None for i in range(n)}},
        _CONFIG,
    ),
    _patch(
        "merge patch: unknown",
        f"{MAPS}/patched?dryRun=All",
        MERGE_PATCH,
        lambda n: {f"n{i}": "v" for i in range(n)},
        _CONFIG,
    ),
    _patch(
        "merge patch: nested",
        f"{WIDGETS}/w?dryRun=All",
        MERGE_PATCH,
        lambda n: {"y": [_deep(90) for _ in range(n)]},
        _SMALL,
    ),
    _patch(
        "strategic merge patch: entries",
        f"{MAPS}/patched?dryRun=All",
        STRATEGIC_PATCH,
        lambda n: {"data": {f"n{i}": "v" for i in range(n)}},
        _CONFIG,
    ),
    _patch(
        "strategic merge patch: finalizers",
        f"{MAPS}/patched?dryRun=All",
        STRATEGIC_PATCH,
        lambda n: {"metadata": {"finalizers": [f"example.com/{i}" for i in range(n)]}},
        _CONFIG,
    ),
    _patch(
        "strategic merge patch: deleted finalizers",
        f"{MAPS}/patched?dryRun=All",
        STRATEGIC_PATCH,
        lambda n: {"metadata": {"$deleteFromPrimitiveList/finalizers": [f"example.com/{i}" for i in range(n)]}},
        _CONFIG,
    ),
    _patch(
        "strategic merge patch: order of finalizers",
        f"{MAPS}/patched?dryRun=All",
        STRATEGIC_PATCH,
        lambda n: {"metadata": {"$setElementOrder/finalizers": [f"example.com/{i}" for i in range(n)]}},
        _CONFIG,
    ),
    _patch(
        "strategic merge patch: owner references",
        f"{MAPS}/patched?dryRun=All",
        STRATEGIC_PATCH,
        lambda n: {
            "metadata": {
                "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "a", "uid": f"{i}"} for i in range(n)]
            }
        },
        _CONFIG,
    ),
    _strategic(
        "$patch: delete", lambda n: _template({"env": [{"name": f"e{i}", "$patch": "delete"} for i in range(n)]}), _ENV
    ),
    _strategic("env", lambda n: _template({"env": [{"name": f"e{i}", "value": "b"} for i in range(n)]}), _ENV),
    _strategic("new env", lambda n: _template({"env": [{"name": f"n{i}", "value": "b"} for i in range(n)]})),
    _strategic("one env again and again", lambda n: _template({"env": [{"name": "e", "value": "b"}] * n})),
    _strategic(
        "order of env", lambda n: _template({"$setElementOrder/env": [{"name": f"e{n - i}"} for i in range(n)]}), _ENV
    ),
    _strategic(
        "ports of containers", lambda n: _template({"ports": [{"containerPort": i % 60_000 + 1} for i in range(n)]})
    ),
    _strategic(
        "containers",
        lambda n: {"spec": {"template": {"spec": {"containers": [{"name": f"c{i}", "image": "i"} for i in range(n)]}}}},
    ),
    _strategic(
        "volumes", lambda n: {"spec": {"template": {"spec": {"volumes": [{"name": f"v{i}"} for i in range(n)]}}}}
    ),
    _strategic(
        "$retainKeys",
        lambda n: {"spec": {"strategy": {"$retainKeys": [f"k{i}" for i in range(n)], "type": "Recreate"}}},
    ),
    _strategic("conditions", lambda n: {"status": {"conditions": [{"type": f"t{i}"} for i in range(n)]}}),
    _strategic(
        "ports of a Service",
        lambda n: {"spec": {"ports": [{"port": i % 60_000 + 1, "name": f"p{i}"} for i in range(n)]}},
        _PORTS,
        f"{SERVICES}/s",
    ),
    _strategic(
        "order of ports of a Service",
        lambda n: {"spec": {"$setElementOrder/ports": [{"port": i % 60_000 + 1} for i in range(n)]}},
        _PORTS,
        f"{SERVICES}/s",
    ),
    _apply("entries", MAPS, _AS_MAP, lambda n: {"data": {f"k{i}": "v" for i in range(n)}}),
    _apply("entries, shuffled", MAPS, _AS_MAP, lambda n: {"data": dict.fromkeys(shuffled("k#", n), "v")}),
    _apply(
        "list as a map, shuffled",
        GADGETS,
        _AS_GADGET,
        lambda n: {"spec": {"items": [{"name": name} for name in shuffled("a#", n)]}},
    ),
    _apply("bad entries", MAPS, _AS_MAP, lambda n: {"data": {f"k {i}": "v" for i in range(n)}}),
    _apply("unknown fields", MAPS, _AS_MAP, lambda n: {f"k{i}": "v" for i in range(n)}),
    _apply(
        "env",
        DEPLOYMENTS,
        _AS_DEPLOYMENT,
        lambda n: _deployment(env=[{"name": f"e{i}", "value": "a"} for i in range(n)]),
        "editor",
    ),
    _apply(
        "one env again and again",
        DEPLOYMENTS,
        _AS_DEPLOYMENT,
        lambda n: _deployment(env=[{"name": "e", "value": "a"}] * n),
        "editor",
    ),
    _apply(
        "ports",
        DEPLOYMENTS,
        _AS_DEPLOYMENT,
        lambda n: _deployment(ports=[{"containerPort": i % 60_000 + 1} for i in range(n)]),
        "editor",
    ),
    _apply("list as a map", GADGETS, _AS_GADGET, lambda n: {"spec": {"items": [{"name": f"a{i}"} for i in range(n)]}}),
    _apply("list as a set", GADGETS, _AS_GADGET, lambda n: {"spec": {"set": [f"a{i}" for i in range(n)]}}),
    _apply("anything", WIDGETS, _AS_WIDGET, lambda n: {"x": {f"a{i}": {"b": 1} for i in range(n)}}),
    _apply("anything, nested", WIDGETS, _AS_WIDGET, lambda n: {"x": [_deep(90) for _ in range(n)]}),
    Case(
        "apply: among a hundred managers",
        "user",
        lambda n: Message(
            "PATCH",
            f"{MAPS}/applied?fieldManager=z&force=true&dryRun=All",
            body=orjson.dumps({**_AS_MAP, "data": {f"m{i % 100}k{i // 100}": "w" for i in range(n)}}),
            media_type=APPLY,
        ),
        most=20_000,
        prepare=_managed,
    ),
    Case(
        "apply: conflicts with a hundred managers",
        "user",
        lambda n: Message(
            "PATCH",
            f"{MAPS}/applied?fieldManager=z&dryRun=All",
            body=orjson.dumps({**_AS_MAP, "data": {f"m{i % 100}k{i // 100}": "w" for i in range(n)}}),
            media_type=APPLY,
        ),
        most=20_000,
        prepare=_managed,
    ),
]
