"""Subresources and deletions: bodies with mutations as dry runs, which change nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from differential.corpus import Example, examples
from differential.mutations import sample
from differential.report import Report
from differential.requests import TABLE, Step
from differential.scenes import scene
from differential.schemas import Schemas
from differential.servers import Pair

NAME: Final = "subresources"
_DELETE_OPTIONS: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "DeleteOptions",
    "gracePeriodSeconds": 5,
    "propagationPolicy": "Foreground",
    "preconditions": {"uid": "x", "resourceVersion": "1"},
}
_DELETE_QUERIES: Final = (
    *("", "&gracePeriodSeconds=0", "&gracePeriodSeconds=-1", "&gracePeriodSeconds=x", "&propagationPolicy=Orphan"),
    *("&propagationPolicy=x", "&propagationPolicy=", "&orphanDependents=true", "&orphanDependents=x", "&uid=x"),
    *("&orphanDependents=true&propagationPolicy=Orphan", "&resourceVersion=1", "&pretty=true", "&dryRun=x"),
    *("&propagationPolicy=Foreground", "&ignoreStoreReadErrorWithClusterBreakingPotential=true"),
)
_SCALE: Final[dict[str, Any]] = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "{name}", "namespace": "{ns}"},
    "spec": {"replicas": 4},
}
_TOKEN: Final[dict[str, Any]] = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "TokenRequest",
    "spec": {
        "audiences": ["a"],
        "expirationSeconds": 700,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"},
    },
}
_EPHEMERAL: Final[dict[str, Any]] = {
    "spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox", "targetContainerName": "c", "stdin": True}]}
}
_RESIZE: Final[dict[str, Any]] = {
    "spec": {"containers": [{"name": "web", "resources": {"requests": {"cpu": "300m"}, "limits": {"memory": "256Mi"}}}]}
}
_BINDING: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": "{name}", "labels": {"a": "b"}},
    "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
}
_EVICTION: Final[dict[str, Any]] = {
    "apiVersion": "policy/v1",
    "kind": "Eviction",
    "metadata": {"name": "{name}"},
    "deleteOptions": {"gracePeriodSeconds": 3, "preconditions": {"uid": "x"}},
}
_APPROVAL: Final[dict[str, Any]] = {
    "status": {
        "conditions": [{"type": "Approved", "status": "True", "reason": "R", "message": "m"}],
        "certificate": "QUFB",
    }
}
_FINALIZE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "{name}"},
    "spec": {"finalizers": ["example.com/a"]},
}
_SUBRESOURCES: Final[Mapping[str, tuple[tuple[str, str, str, dict[str, Any]], ...]]] = {
    **{
        kind: (("PUT", "scale", "", _SCALE), ("PATCH", "scale", "merge", {"spec": {"replicas": 5}}))
        for kind in ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
    },
    "ServiceAccount": (("POST", "token", "", _TOKEN),),
    "Pod": (
        ("PATCH", "ephemeralcontainers", "strategic", _EPHEMERAL),
        ("PATCH", "resize", "strategic", _RESIZE),
        ("POST", "binding", "", _BINDING),
        ("POST", "eviction", "", _EVICTION),
    ),
    "CertificateSigningRequest": (("PATCH", "approval", "merge", _APPROVAL), ("PATCH", "status", "merge", _APPROVAL)),
    "Namespace": (("PUT", "finalize", "", _FINALIZE),),
}


def run(pair: Pair, schemas: Schemas, report: Report, seed: int, count: int, only: str) -> None:
    """Store each example, and send `count` variants to each of its subresources and as deletions."""
    with scene(pair, {"name": "differential-subresources"}) as at:
        for number, example in enumerate(examples(schemas, only)):
            rng = random.Random(f"{seed} subresources {example.collection} {number}")
            report.add(NAME, at.perform({"request": f"POST {example.collection}", "body": example.body}))
            for names in at.names:
                names["name"] = example.name
            for step in _steps(example, schemas, rng, count):
                report.add(NAME, at.ask(step | {"headers": TABLE} if rng.random() < 0.1 else step))
            at.remove(example.path)


def _steps(example: Example, schemas: Schemas, rng: random.Random, count: int) -> Iterator[Step]:
    for _ in range(count):
        yield {"request": f"DELETE {example.path}?dryRun=All{rng.choice(_DELETE_QUERIES)}"}
    for mutation in sample(_DELETE_OPTIONS, schemas, schemas.of(_DELETE_OPTIONS), rng, count):
        body = mutation.apply(_DELETE_OPTIONS)
        if isinstance(body, dict):
            yield {"request": f"DELETE {example.path}", "body": body | {"dryRun": ["All"]}, "about": str(mutation)}
    for method, name, form, base in _SUBRESOURCES.get(example.body["kind"], ()):
        request = f"{method} {example.path}/{name}?dryRun=All"
        patch = {"patch": form} if form else {}
        yield {"request": request, "body": base, **patch}
        for mutation in sample(base, schemas, schemas.of(base), rng, 3 * count):
            yield {"request": request, "body": mutation.apply(base), "about": str(mutation), **patch}
