"""Watches of what was written: from each version, with selectors and in all forms."""

from __future__ import annotations

import random
from typing import Any, Final

from differential.corpus import Example, examples
from differential.report import Report
from differential.requests import READ_ACCEPTS, Step, with_query
from differential.scenes import Scene, scene
from differential.schemas import Schemas
from differential.servers import Pair

NAME: Final = "watches"
_SELECTORS: Final = (
    *(
        "labelSelector=w%3D1",
        "labelSelector=w%3D2",
        "labelSelector=w",
        "labelSelector=!w",
        "fieldSelector=metadata.name%3Dnope",
    ),
    *("", "", "", "labelSelector=w in (2,3)", "fieldSelector=metadata.namespace%3D{ns}", "includeObject=None"),
)
_STARTS: Final = (
    *(
        "resourceVersion={rv0}",
        "resourceVersion={rv1}",
        "resourceVersion={rv2}",
        "resourceVersion=0",
        "resourceVersion=x",
    ),
    *(
        "",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "sendInitialEvents=true",
    ),
    *(
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=Exact",
        "resourceVersion=99999999",
    ),
)


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Create, change and delete each example, and watch the changes `count` times two ways."""
    for number, example in enumerate(examples(schemas, only)):
        with scene(pair, {"name": f"differential-watches-{number}"}) as at:
            rng = random.Random(f"{seed} watches {example.collection} {number}")
            _write(at, example, report)
            for _ in range(2 * count):
                report.add(NAME, at.ask(_watch(example, rng)))
            at.remove(example.path)


def _write(at: Scene, example: Example, report: Report) -> None:
    version: dict[str, Any] = {"save": {"rv0": "metadata.resourceVersion"}}
    at.perform({"request": f"GET {example.collection}?limit=1", **version})
    for number, labels in enumerate(({"w": "1"}, {"w": "2"}, {"w": None})):
        patch = {"metadata": {"labels": labels}}
        saved = {"save": {f"rv{number + 1}": "metadata.resourceVersion"}}
        if not number:
            body = example.body | {"metadata": example.body["metadata"] | {"labels": labels}}
            report.add(NAME, at.perform({"request": f"POST {example.collection}", "body": body, **saved}))
        else:
            report.add(NAME, at.perform({"request": f"PATCH {example.path}", "patch": "merge", "body": patch, **saved}))


def _watch(example: Example, rng: random.Random) -> Step:
    target = rng.choice((example.collection, example.collection, example.path))
    parameters = ["watch=true", "timeoutSeconds=1", rng.choice(_STARTS), rng.choice(_SELECTORS)]
    step: Step = {"request": with_query(f"GET {target}", *filter(None, "&".join(parameters).split("&"))), "watch": 9}
    if rng.random() < 0.3:
        step["headers"] = {"Accept": rng.choice(READ_ACCEPTS[:4])}
    return step
