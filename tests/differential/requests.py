"""Requests without effects, made from requests that a recording makes."""

from __future__ import annotations

import random
import urllib.parse
from collections.abc import Iterator
from typing import Any, Final

from differential.mutations import sample
from differential.schemas import Schemas

Step = dict[str, Any]
"""A step of a scenario. `about` says what is unusual about it."""
_KEPT: Final[tuple[str, ...]] = ("request", "as", "headers", "body", "patch", "ignore")
TABLE: Final = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io;includeObject=None"}
READ_ACCEPTS: Final = (
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/yaml",
)
READ_QUERIES: Final = (
    *("limit=1", "limit=-1", "resourceVersion=0", "resourceVersion=x", "resourceVersionMatch=Exact", "continue=x"),
    *("fieldSelector=metadata.name%3Da", "fieldSelector=metadata.namespace%3Da", "fieldSelector=metadata.name!%3Da"),
    *("fieldSelector=spec.x%3Da", "fieldSelector=metadata.name", "fieldSelector=status.phase%3DRunning"),
    *("labelSelector=a", "labelSelector=!a", "labelSelector=a%3Db", "labelSelector=a in (b,c)", "labelSelector=a b"),
    *(
        "labelSelector=a%3E1",
        "labelSelector=a notin ()",
        "labelSelector=,",
        "includeObject=Object",
        "includeObject=None",
    ),
    *("includeObject=x", "pretty=true", "timeoutSeconds=x", "allowWatchBookmarks=x", "sendInitialEvents=true"),
)
_WRITE_QUERIES: Final = (
    *(
        "fieldValidation=Strict",
        "fieldValidation=Warn",
        "fieldValidation=Ignore",
        "fieldValidation=x",
        "fieldManager=m",
    ),
    *("fieldManager=a b%0A", "force=true", "pretty=1", "dryRun=x", "fieldManager=" + "m" * 129),
)


def with_query(request: str, *parameters: str) -> str:
    """Return a request with further query parameters, which replace those of the same name."""
    target, _, query = request.partition("?")
    names = {parameter.partition("=")[0] for parameter in parameters}
    kept = [one for one in query.split("&") if one and one.partition("=")[0] not in names]
    return "?".join(filter(None, (target, "&".join([*kept, *map(_quoted, parameters)]))))


def _quoted(parameter: str) -> str:
    return urllib.parse.quote(parameter, safe="=%{}!/")


def harmless(step: Step) -> Step | None:
    """Return the step as one that changes nothing, or None if it cannot be one."""
    method = step["request"].partition(" ")[0]
    bare = {key: step[key] for key in _KEPT if key in step}
    if "watch" in step or "raw" in step:
        return None
    if method in ("GET", "HEAD"):
        return bare if "/log" not in step["request"] else None
    if method not in ("POST", "PUT", "PATCH") or "body" not in step:
        return None
    return bare | {"request": with_query(step["request"], "dryRun=All")}


def variants(step: Step, schemas: Schemas, rng: random.Random, count: int) -> Iterator[Step]:
    """Yield up to `count` variants of a step that change nothing."""
    base = harmless(step)
    if base is None:
        return
    if "body" not in base:
        yield from _reads(base, rng, min(count, 3))
        return
    body = base["body"]
    for mutation in sample(body, schemas, schemas.of(body), rng, count):
        variant = base | {"body": mutation.apply(body), "about": str(mutation)}
        if rng.random() < 0.05:
            variant["headers"] = base.get("headers", {}) | {"Accept": rng.choice(READ_ACCEPTS)}
        if rng.random() < 0.15:
            variant["request"] = with_query(variant["request"], rng.choice(_WRITE_QUERIES))
            if "dryRun=x" not in variant["request"] and "dryRun=All" not in variant["request"]:
                continue
        yield variant


def _reads(base: Step, rng: random.Random, count: int) -> Iterator[Step]:
    for _ in range(count):
        variant = dict(base)
        if rng.random() < 0.5:
            variant["headers"] = base.get("headers", {}) | {"Accept": rng.choice(READ_ACCEPTS)}
        if rng.random() < 0.7 or "headers" not in variant:
            variant["request"] = with_query(base["request"], rng.choice(READ_QUERIES))
        yield variant
