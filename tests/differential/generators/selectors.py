"""Lists of every resource with selectors, limits, versions and media types of every form."""

from __future__ import annotations

import itertools
import random
import re
from typing import Final

from differential.corpus import examples
from differential.report import Report
from differential.requests import READ_ACCEPTS, READ_QUERIES, Step, with_query
from differential.scenes import scene
from differential.schemas import Schemas
from differential.servers import Pair

NAME: Final = "selectors"
_FIELDS: Final = (
    *(
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "status.phase",
        "spec.nodeName",
        "spec.unschedulable",
        "type",
    ),
    *(
        "reason",
        "involvedObject.kind",
        "regarding.name",
        "spec.signerName",
        "status.successful",
        "spec.clusterIP",
        "name",
    ),
    *(
        "spec.driver",
        "spec.type",
        "spec.restartPolicy",
        "status.replicas",
        "source",
        "reportingComponent",
        "spec.nope",
        "",
    ),
)
_OPERATIONS: Final = ("=", "==", "!=", "=x,metadata.name=y", "=\\,", "")


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Store an example of each resource, and list the resource in `count` times ten ways."""
    with scene(pair, {"name": "differential-selectors"}) as at:
        by_collection = itertools.groupby(examples(schemas, only), key=lambda example: example.collection)
        for collection, group in by_collection:
            example = next(group)
            rng = random.Random(f"{seed} {collection}")
            at.perform({"request": f"POST {collection}", "body": example.body})
            for _ in range(count * 10):
                report.add(NAME, at.ask(_read(rng, example.path, collection)))
            at.remove(example.path)


def _read(rng: random.Random, path: str, collection: str) -> Step:
    everywhere = re.sub("/namespaces/{ns}", "", collection)
    target = rng.choice((path, collection, collection, collection, everywhere))
    parameters = []
    if rng.random() < 0.6:
        parameters.append(rng.choice(READ_QUERIES))
    if rng.random() < 0.6:
        parameters.append(
            f"fieldSelector={rng.choice(_FIELDS)}{rng.choice(_OPERATIONS)}".replace("=", "%3D").replace("%3D", "=", 1)
        )
    step: Step = {"request": with_query(f"GET {target}", *parameters)}
    if rng.random() < 0.3:
        step["headers"] = {"Accept": rng.choice(READ_ACCEPTS)}
    if target == everywhere != collection:  # other namespaces have objects of each server's own
        step["request"] = with_query(step["request"], "fieldSelector=metadata.namespace%3D{ns}")
    return step
