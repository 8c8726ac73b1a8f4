"""Custom resources of generated definitions: created, changed and applied with mutations, and listed as Tables."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from differential.mutations import sample
from differential.report import Report
from differential.requests import TABLE, Step
from differential.scenes import Scene, scene
from differential.schemas import Schemas
from differential.servers import Pair
from differential.structural import changed, definition, schema_of, value

NAME: Final = "custom"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Make `count` times two definitions, and objects of those that kube-apiserver accepts."""
    del only
    for number in range(2 * count):
        rng = random.Random(f"{seed} custom {number}")
        name = f"d{seed}-{number}"
        with scene(pair, {"name": f"differential-{name}"}) as at:
            body = definition(rng, name)
            for mutation in sample(body, schemas, schemas.of(body), rng, 10):
                report.add(
                    NAME,
                    at.ask(
                        {
                            "request": f"POST {_DEFINITIONS}?dryRun=All",
                            "body": mutation.apply(body),
                            "about": str(mutation),
                        }
                    ),
                )
            report.add(NAME, at.perform({"request": f"POST {_DEFINITIONS}", "body": body}))
            path = f"{_DEFINITIONS}/{body['metadata']['name']}"
            if not at.exists(path):
                continue
            at.perform({"request": f"GET {path}", "until": {"status.conditions[type=Established].status": "True"}})
            for step in _objects(at, body, schemas, rng):
                report.add(NAME, at.ask(step))
            for _ in range(2):
                other = changed(body, rng)
                at.perform(
                    {
                        "request": f"PATCH {path}",
                        "patch": "merge",
                        "body": {"spec": {"versions": other["spec"]["versions"]}},
                    }
                )
                for step in _updates(other, rng):
                    report.add(NAME, at.ask(step))
            at.remove(path)


def _objects(at: Scene, body: dict[str, Any], schemas: Schemas, rng: random.Random) -> Iterator[Step]:
    collection = f"/apis/{body['spec']['group']}/v1/namespaces/{{ns}}/things"
    head = {"apiVersion": f"{body['spec']['group']}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    at.perform({"request": f"GET {collection}", "until_status": 200})
    for _ in range(10):
        at.perform({"request": f"POST {collection}", "body": head | _random(body, rng)})
        if at.exists(f"{collection}/a"):
            break
    for _ in range(12):
        created = head | {"metadata": {"name": "b"}} | _random(body, rng)
        yield _table(rng, {"request": f"POST {collection}?dryRun=All", "body": created})
    stored = at.stored(f"{collection}/a")
    if stored is None:
        return
    for _ in range(8):
        changed = _random(body, rng)
        yield {"request": f"PUT {collection}/a?dryRun=All", "body": stored | changed}
        yield {"request": f"PATCH {collection}/a?dryRun=All", "patch": "merge", "body": changed}
        yield {"request": f"PATCH {collection}/a?dryRun=All&fieldManager=m", "patch": "apply", "body": head | changed}
    for mutation in sample(stored, schemas, schema_of(body), rng, 40):
        yield _table(
            rng, {"request": f"PUT {collection}/a?dryRun=All", "body": mutation.apply(stored), "about": str(mutation)}
        )


def _updates(body: dict[str, Any], rng: random.Random) -> Iterator[Step]:
    """Yield reads and updates of the stored object, which the changed schema may reject."""
    collection = f"/apis/{body['spec']['group']}/v1/namespaces/{{ns}}/things"
    head = {"apiVersion": f"{body['spec']['group']}/v1", "kind": "Thing", "metadata": {"name": "a"}}
    yield {"request": f"GET {collection}/a"}
    yield {"request": f"GET {collection}", "headers": TABLE}
    yield {"request": f"GET {collection}/a/scale"}
    yield {"request": f"GET {collection}?fieldSelector=spec.a%3Dabc"}
    for _ in range(8):
        new = _random(body, rng)
        yield {
            "request": f"PATCH {collection}/a?dryRun=All",
            "patch": "merge",
            "body": {"metadata": {"labels": {"x": "y"}}},
        }
        part = {key: new["spec"][key] for key in rng.sample(sorted(new["spec"]), min(1, len(new["spec"])))}
        yield {"request": f"PATCH {collection}/a?dryRun=All", "patch": "merge", "body": {"spec": part}}
        yield {
            "request": f"PATCH {collection}/a?dryRun=All&fieldManager=m&force=true",
            "patch": "apply",
            "body": head | {"spec": part},
        }
        yield {"request": f"PATCH {collection}/a/status?dryRun=All", "patch": "merge", "body": {"status": {"r": 1}}}
        yield {
            "request": f"PATCH {collection}/a/scale?dryRun=All",
            "patch": "merge",
            "body": {"spec": {"replicas": rng.choice((0, 2, 5, 11))}},
        }
        yield {"request": f"PATCH {collection}/a?dryRun=All&fieldValidation=Strict", "patch": "merge", "body": new}


def _random(body: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    return {"spec": value(schema_of(body)["properties"]["spec"], rng)}


def _table(rng: random.Random, step: Step) -> Step:
    return step | {"headers": TABLE} if rng.random() < 0.2 else step
