"""Every kind in the server's own OpenAPI: objects of their types with odd content are written, patched and read back.

There must be no 500 and no hang. FUZZ_SECONDS is the duration of both versions of HTTP (`make fuzz`: half an hour), and
FUZZ_SEED selects the content; `make fuzz` uses another seed each time.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest

from support.attacked import Attacked
from support.waiting import until
from support.wire import Answer, Client, is_accidental_error

SECONDS: Final = float(os.environ.get("FUZZ_SECONDS", "45")) / 2
SEED: Final = int(os.environ.get("FUZZ_SEED") or 1)
pytestmark = [pytest.mark.long, pytest.mark.timeout(SECONDS + 180)]

PATCHES: Final = ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml")
STRINGS: Final = (
    "",
    "x",
    "a",
    "a/b",
    "A_B",
    "-",
    ".",
    "a.b.c",
    "*",
    "x" * 300,
    "\x00",
    "\u2028é😀",
    "a\nb",
    "10Gi",
    "-5",
    "1e400",
    "0.5m",
    "100%",
    "101%",
    "50%",
    "::1",
    "10.0.0.1",
    "10.0.0.0/8",
    "1.2.3.4/33",
    "2024-01-01T00:00:00Z",
    "2024-01-01T00:00:00.123456Z",
    "yesterday",
    "* * * * *",
    "@every 1s",
    "CRON_TZ=x * * * * *",
    "http://a/b",
    "https://[::1",
    "YQ==",
    "!",
    "{",
    "self.x == 1",
    "object.spec.replicas > 'x'",
    "has(",
    "$(A)",
    "(((",
    "[a-",
    "^(a+)+$",
    "{.spec.x}",
    "Always",
    "Never",
    "Equals",
    "In",
    "Exists",
    "ClusterIP",
    "NodePort",
    "None",
    "TCP",
    "Service",
    "v1",
    "apps/v1",
    "default",
    "kubernetes.io/os",
)
NUMBERS: Final = (0, 1, -1, 2, 5, 80, 65536, 1 << 31, -(1 << 31) - 1, 1 << 63, 1 << 70, 1.5, 1e300, -0.0)
ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    [],
    {},
    [None],
    {"": ""},
    [[]],
    {"a": None},
    1 << 64,
    "\x00",
)


@dataclass(frozen=True)
class Resource:
    path: str
    kind: dict[str, str]
    verbs: frozenset[str]
    subresources: tuple[str, ...]


class Maker:
    """Generates values of OpenAPI schemas, valid and invalid."""

    def __init__(self, documents: dict[str, Any], chance: random.Random) -> None:
        self._schemas = documents
        self._chance = chance

    def of_kind(self, resource: Resource) -> dict[str, Any]:
        wanted = {"group": resource.kind["group"], "version": resource.kind["version"], "kind": resource.kind["kind"]}
        for schema in self._schemas.values():
            if wanted in schema.get("x-kubernetes-group-version-kind", ()):
                found = self.value(schema, 0)
                made: dict[str, Any] = found if isinstance(found, dict) else {}
                group = f"{wanted['group']}/" if wanted["group"] else ""
                return {**made, "apiVersion": group + wanted["version"], "kind": wanted["kind"]}
        return {}

    def value(self, schema: dict[str, Any], depth: int) -> Any:
        chance = self._chance
        if chance.random() < 0.01:
            return chance.choice(ODD)
        if "allOf" in schema:
            schema = schema["allOf"][0]
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        if "oneOf" in schema:
            return chance.choice([chance.choice(NUMBERS), chance.choice(STRINGS)])
        if depth > 9:
            return None
        kind = schema.get("type")
        if kind == "object" or "properties" in schema:
            return self._object(schema, depth)
        if kind == "array":
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(chance.choice((0, 1, 1, 1, 2, 3)))]
        if kind in ("integer", "number"):
            return chance.choice(NUMBERS)
        if kind == "boolean":
            return chance.random() < 0.5
        if kind == "string":
            return (
                chance.choice(schema["enum"]) if "enum" in schema and chance.random() < 0.8 else chance.choice(STRINGS)
            )
        return chance.choice(ODD)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        chance = self._chance
        if "properties" not in schema:
            inner = schema.get("additionalProperties") or {}
            inner = inner if isinstance(inner, dict) else {}
            return {chance.choice(STRINGS): self.value(inner, depth + 1) for _ in range(chance.choice((0, 1, 1, 2)))}
        needed = set(schema.get("required", ()))
        likely = 0.55 if depth < 2 else 0.25 if depth < 5 else 0.1
        return {
            name: self.value(inner, depth + 1)
            for name, inner in schema["properties"].items()
            if (name in needed and chance.random() < 0.95) or chance.random() < likely
        }


@pytest.fixture(scope="module")
def quick(server: Attacked, http2: bool) -> Iterator[Client]:
    """A request that takes longer than this is a hang."""
    with Client(server, timeout=float(os.environ.get("FUZZ_PATIENCE", "15")), http2=http2) as client:
        client("POST", "/api/v1/namespaces", {"metadata": {"name": "kinds"}})
        yield client


@pytest.fixture(scope="module")
def resources(quick: Client) -> list[Resource]:
    def read() -> dict[str, Answer]:
        groups = quick("GET", "/apis").json["groups"]
        roots = ["/api/v1", *(f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"])]
        return {root: quick("GET", root) for root in roots}

    def are_served(answers: dict[str, Answer]) -> bool:
        """Return False while a group that another test has just deleted is still listed."""
        return all(answer.status == 200 for answer in answers.values())

    found = []
    for root, answer in until(read, are_served, description="all listed group-versions are served").items():
        listed = answer.json["resources"]
        for entry in listed:
            name = entry["name"]
            if "/" in name:
                continue
            group, _, version = root.removeprefix("/apis/").removeprefix("/api/").rpartition("/")
            kind = {"group": entry.get("group", group), "version": entry.get("version", version), "kind": entry["kind"]}
            path = f"{root}/namespaces/kinds/{name}" if entry["namespaced"] else f"{root}/{name}"
            below = tuple(e["name"].partition("/")[2] for e in listed if e["name"].startswith(f"{name}/"))
            found.append(Resource(path, kind, frozenset(entry["verbs"]), below))
    assert len(found) > 70
    return found


@pytest.fixture(scope="module")
def schemas(quick: Client) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in quick("GET", "/openapi/v3").json["paths"].values():
        found |= quick("GET", entry["serverRelativeURL"]).json.get("components", {}).get("schemas", {})
    return found


class Session:
    """The requests for one resource. `last` is the request that an error belongs to."""

    def __init__(self, client: Client, maker: Maker, chance: random.Random) -> None:
        self._client, self._maker, self._chance = client, maker, chance
        self.last: tuple[Any, ...] = ()

    def ask(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Answer:
        self.last = (method, path, media_type, json.dumps(body))
        answer = self._client(method, path, body, {"Content-Type": media_type})
        assert not is_accidental_error(answer), (SEED, self.last, answer.status, answer.body[:600])
        return answer

    def try_all(self, resource: Resource) -> None:
        chance, maker = self._chance, self._maker
        if "create" in resource.verbs:
            self._write(resource)
        if "list" in resource.verbs:
            selector = {
                "fieldSelector": self._selector(),
                "labelSelector": self._selector(),
                "limit": str(chance.choice(NUMBERS)),
            }
            keep = {key: value for key, value in selector.items() if chance.random() < 0.4}
            self.ask("GET", f"{resource.path}?{urlencode(keep, errors='surrogatepass')}")
        if "deletecollection" in resource.verbs and resource.path.startswith("/apis/") and chance.random() < 0.1:
            self.ask(
                "DELETE",
                f"{resource.path}?dryRun=All&{urlencode({'labelSelector': self._selector()})}",
                maker.of_kind(resource),
            )

    def _write(self, resource: Resource) -> None:
        chance, maker = self._chance, self._maker
        obj = maker.of_kind(resource)
        meta = obj["metadata"] = {"name": f"f{chance.randrange(30)}"} if chance.random() < 0.8 else obj.get("metadata")
        self.ask(
            "POST",
            f"{resource.path}?dryRun=All&fieldValidation={chance.choice(('Strict', 'Warn', 'Ignore', 'x'))}",
            obj,
        )
        name = quote(str(meta["name"]) if isinstance(meta, dict) and "name" in meta else "f0", safe="") or "f0"
        for verb, method in (("update", "PUT"), ("patch", "PATCH")):
            if verb not in resource.verbs:
                continue
            media_type = "json" if method == "PUT" else chance.choice(PATCHES)
            body = (
                self._operations()
                if media_type.startswith("json-patch")
                else obj
                if chance.random() < 0.5
                else maker.of_kind(resource)
            )
            where = f"{resource.path}/{name}"
            if resource.subresources and chance.random() < 0.3:
                where += f"/{chance.choice(resource.subresources)}"
            query = "dryRun=All&fieldManager=f&force=true" if "apply" in media_type else "dryRun=All"
            self.ask(method, f"{where}?{query}", body, f"application/{media_type}")
        if "status" in resource.subresources and chance.random() < 0.3:
            self._stored(resource)

    def _stored(self, resource: Resource) -> None:
        """Create a valid object, so that changes meet a stored object, and delete it afterwards."""
        chance, maker = self._chance, self._maker
        obj = maker.of_kind(resource)
        obj["metadata"] = {"name": "stored"}
        if self.ask("POST", resource.path, obj).status != 201:
            return
        path = f"{resource.path}/stored"
        for where in (path, f"{path}/status"):
            other = maker.of_kind(resource)
            other["metadata"] = {"name": "stored"}
            self.ask("PUT", where, other)
            self.ask("PATCH", where, other, f"application/{chance.choice(PATCHES[:2])}")
        self.ask("GET", path)
        self._client("GET", resource.path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
        self.ask("PATCH", path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
        self.ask("DELETE", path, {"gracePeriodSeconds": 0})

    def _selector(self) -> str:
        chance = self._chance
        return chance.choice(
            (
                "a=b",
                "a in (b,c)",
                "!a",
                "metadata.name=x",
                "spec.nodeName!=",
                "a=b,",
                "(",
                "=",
                "a" * 100,
                chance.choice(STRINGS),
            )
        )

    def _operations(self) -> Any:
        chance = self._chance
        paths = (
            "",
            "/",
            "/spec",
            "/metadata/labels/a",
            "/metadata/name",
            "/spec/x/0",
            "/metadata/finalizers/-",
            "/a~1b",
            "/~2",
        )
        return [
            {
                "op": chance.choice(("add", "remove", "replace", "move", "copy", "test")),
                "path": chance.choice(paths),
                "value": chance.choice(ODD),
            }
            | ({"from": chance.choice(paths)} if chance.random() < 0.3 else {})
            for _ in range(chance.choice((0, 1, 1, 2)))
        ]


def test_generated_objects_of_every_kind_are_accepted_or_rejected(
    quick: Client, resources: list[Resource], schemas: dict[str, Any]
) -> None:
    chance = random.Random(SEED)
    session = Session(quick, Maker(schemas, chance), chance)
    print(f"FUZZ_SEED={SEED}")
    deadline = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < deadline or not rounds:
        for resource in chance.sample(resources, len(resources)):
            session.try_all(resource)
            if rounds and time.monotonic() > deadline:
                break
        rounds += 1


def giant(chance: random.Random) -> Any:
    """Return a value that is deep, long or has many members."""
    size = chance.choice((150, 199, 200, 300, 5_000, 30_000))
    leaves: tuple[Any, ...] = ("x", 1, None, {}, "!" * 1000)
    leaf = chance.choice(leaves)
    match chance.randrange(8):
        case 0:
            return json.loads('{"a":' * min(size, 900) + json.dumps(leaf) + "}" * min(size, 900))
        case 1:
            return json.loads("[" * min(size, 900) + json.dumps(leaf) + "]" * min(size, 900))
        case 2:
            return chance.choice(("x", "\x00", "\u00e9", '"', "a/", "-", "1")) * size * 10
        case 3:
            return {f"{i}{chance.choice(('', ' ', '!'))}": leaf for i in range(min(size, 5000))}
        case 4:
            return [leaf] * min(size, 5000)
        case 5:
            return [str(i) for i in range(size)]
        case 6:
            return {"k" * size * 10: [leaf] * 200}
        case _:
            return [{"name": f"n{i}", "key": leaf} for i in range(min(size, 5000))]


def with_giants(value: Any, chance: random.Random) -> Any:
    """Return a copy of a value in which some members are huge."""
    if chance.random() < 0.15:
        return giant(chance)
    if isinstance(value, dict):
        return {key: with_giants(member, chance) for key, member in value.items()}
    return [with_giants(item, chance) for item in value] if isinstance(value, list) else value


class GiantSession(Session):
    """Requests with huge values in bodies, names, queries and headers, for every verb and content type."""

    def try_all(self, resource: Resource) -> None:
        chance = self._chance
        obj = with_giants(self._maker.of_kind(resource), chance)
        meta = obj.setdefault("metadata", {"name": "giant"}) if isinstance(obj, dict) else None
        if isinstance(meta, dict) and chance.random() < 0.8:
            meta["name"] = "giant"
        where = f"{resource.path}/giant" + (
            f"/{chance.choice(resource.subresources)}" if resource.subresources and chance.random() < 0.3 else ""
        )
        strict = chance.choice(("Strict", "Warn", "Ignore"))
        query = f"dryRun=All&fieldValidation={strict}"
        self.bounded(
            "POST", f"{resource.path}?{query}", obj, chance.choice(("json", "yaml", "vnd.kubernetes.protobuf"))
        )
        self.bounded("POST", resource.path, {**self._maker.of_kind(resource), "metadata": {"name": "giant"}}, "json")
        self.bounded("PUT", f"{where}?{query}", obj, chance.choice(("json", "yaml")))
        for media_type in PATCHES:
            body = (
                [{"op": chance.choice(("add", "replace", "test")), "path": "/spec", "value": giant(chance)}]
                if "json-patch" in media_type
                else obj
            )
            more = "&fieldManager=f&force=true" if "apply" in media_type else ""
            self.bounded("PATCH", f"{where}?{query}{more}", body, media_type)
        selector = urlencode({chance.choice(("labelSelector", "fieldSelector")): str(giant(chance))[:5000]})
        self.bounded("GET", f"{resource.path}?{selector}")
        self.bounded("DELETE", f"{where}?dryRun=All", chance.choice((giant(chance), {"preconditions": giant(chance)})))
        self.bounded("DELETE", f"{resource.path}/{'n' * chance.choice((300, 10_000))}")
        self.bounded("DELETE", f"{resource.path}/giant", {"gracePeriodSeconds": 0})

    def bounded(self, method: str, path: str, body: Any = None, media_type: str = "json") -> None:
        answer = self.ask(method, path, body, f"application/{media_type}")
        assert answer.status < 400 or len(answer.body) < 1_200_000, (
            SEED,
            self.last[:3],
            answer.status,
            len(answer.body),
        )


def test_giant_and_deep_values_are_accepted_or_rejected(
    quick: Client, resources: list[Resource], schemas: dict[str, Any]
) -> None:
    chance = random.Random(SEED)
    session = GiantSession(quick, Maker(schemas, chance), chance)
    print(f"FUZZ_SEED={SEED}")
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        session.try_all(chance.choice(resources))
