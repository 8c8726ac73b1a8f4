"""The works of the results table: the requests of each, the cost on the real server, and the goals."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from bench.objects import (
    GROUP,
    LISTED,
    NAMESPACE,
    RULED,
    RULED_GROUP,
    UPDATED,
    config_map,
    endpoint_slice,
    pod,
    pod_status,
    ruled,
)
from bench.wrk import Load

TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_MAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_PODS: Final = f"/api/v1/namespaces/{LISTED}/pods"
_SLICES: Final = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
_CUSTOM: Final = f"/apis/{RULED_GROUP}/v1/namespaces/{NAMESPACE}/ruled"


@dataclass(frozen=True)
class Work:
    """A work of the table.

    Attributes:
        real: the CPU time on kube-apiserver v1.37.1 on this type of machine, as a multiple of `hello`; 0 if it is
            unknown. For custom objects it follows from the ratio to APPLY in one run.
        goals: the share of kube-apiserver's CPU time to reach, by the key of the target; a target that is missing has
            no goal.
        heavy: whether requests that are in flight at the end count too, by received bytes, because each takes long.
    """

    key: str
    title: str
    load: Load | None
    real: float
    goals: dict[str, float] = field(default_factory=dict)
    heavy: bool = False


def _goals(one: float, four: float) -> dict[str, float]:
    """Return the goals of one process and of four services by their keys."""
    return {"embedded": one, "four": four}


def _body(obj: dict[str, object], name: str) -> str:
    return json.dumps({**obj, "metadata": {**obj["metadata"], "name": name}})  # type: ignore[dict-item]


_APPLIED: Final = json.dumps(
    {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "applied-@M@", "labels": {"app": "bench"}},
        "data": {**{f"key-{i}": f"value-{i}" for i in range(10)}, "n": "@N@"},
    }
)

WORKS: Final = (
    Work("get", "GET one ConfigMap", Load(f"{_MAPS}/one"), 7.8, _goals(0.2, 0.5)),
    Work(
        "create",
        "CREATE ConfigMap",
        Load(_MAPS, method="POST", content_type="application/json", body=_body(config_map(""), "created-@N@")),
        14.8,
        _goals(0.55, 0.9),
    ),
    Work(
        "patch",
        "merge PATCH of one object",
        Load(f"{_MAPS}/one", method="PATCH", content_type="application/merge-patch+json", body='{"data":{"n":"@N@"}}'),
        60,
        _goals(0.12, 0.2),
    ),
    Work(
        "apply",
        "server-side APPLY",
        Load(
            f"{_MAPS}/applied-@M@?fieldManager=bench&force=true",
            method="PATCH",
            content_type="application/apply-patch+yaml",
            body=_APPLIED,
            modulus=64,
        ),
        26.5,
        _goals(0.45, 0.65),
    ),
    Work(
        "list-cached",
        "LIST 10,000 pods, resourceVersion=0",
        Load(f"{_PODS}?resourceVersion=0"),
        8450,
        _goals(0.06, 0.15),
        heavy=True,
    ),
    Work("list", "LIST 10,000 pods, consistent", Load(_PODS), 8000, _goals(0.06, 0.15), heavy=True),
    Work("list-gzip", "LIST 10,000 pods, gzip, as client-go asks", Load(_PODS, encoding="gzip"), 0, heavy=True),
    Work("page", "LIST limit=500", Load(f"{_PODS}?limit=500"), 430),
    Work("selector", "LIST by a label selector: 1,000 of 10,000", Load(f"{_PODS}?labelSelector=batch%3D3"), 930),
    Work("table", "LIST as Table of 500", Load(f"{_PODS}?limit=500", accept=TABLE), 355, _goals(0.25, 0.45)),
    Work("watch", "watch: delivery of one event to one of 200 watchers", None, 0.57, _goals(0.5, 0.9)),
    Work("proxy", "GET proxied to an aggregated server", Load(f"/apis/{GROUP}/v1/things/one"), 8, _goals(0.35, 0.35)),
    Work(
        "create-pod",
        "CREATE pod (default admission)",
        Load(
            f"/api/v1/namespaces/{NAMESPACE}/pods",
            method="POST",
            content_type="application/json",
            body=_body(pod("", 0), "pod-@N@"),
        ),
        39.5,
        _goals(0.6, 0.9),
    ),
    Work(
        "status",
        "strategic merge PATCH of a pod's status, as a kubelet sends it, 64 pods in turn",
        Load(
            f"/api/v1/namespaces/{NAMESPACE}/pods/status-@M@/status",
            method="PATCH",
            content_type="application/strategic-merge-patch+json",
            body=json.dumps(pod_status("@N@")),
            modulus=UPDATED,
        ),
        0,
    ),
    Work(
        "slice",
        "PUT of an EndpointSlice with 10 endpoints, 64 slices in turn",
        Load(
            f"{_SLICES}/slice-@M@",
            method="PUT",
            content_type="application/json",
            body=_body(endpoint_slice("", 10, "@N@"), "slice-@M@"),
            modulus=UPDATED,
        ),
        0,
    ),
    Work(
        "custom-create",
        "CREATE a custom object (24 kB schema, three CEL rules)",
        Load(_CUSTOM, method="POST", content_type="application/json", body=_body(ruled(""), "created-@N@")),
        85,
        _goals(0.25, 0.35),
    ),
    Work(
        "custom-patch",
        "merge PATCH of a custom object (same schema), 64 objects in turn",
        Load(
            f"{_CUSTOM}/one-@M@",
            method="PATCH",
            content_type="application/merge-patch+json",
            body='{"spec":{"field5":{"name":"n-@N@"}}}',
            modulus=RULED,
        ),
        140,
        _goals(0.25, 0.35),
    ),
)


@dataclass(frozen=True)
class Quantity:
    """A figure that is not a rate.

    Attributes:
        key: its name in `--only` and in the notes, such as "flood-get". The text before its first hyphen works too.
        title: its name on the page.
        unit: the unit of `real` and of the goals.
        real: the figure of kube-apiserver v1.37.1, or 0 if it is unknown.
        goals: the goal by the key of the target; a target that is missing has no goal.
    """

    key: str
    title: str
    unit: str
    real: float
    goals: dict[str, float]


_MEMORY: Final = (
    Quantity("start-first", "ready after the first start", "s", 0, {}),
    Quantity("start-second", "ready after the second start", "s", 2.4, {"embedded": 0.8}),
    Quantity("idle", "resident, idle", "MB", 266, {"embedded": 100}),
    Quantity("idle-together", "resident, idle, files that all of them map counted once", "MB", 266, {"four": 240}),
    Quantity("idle-aggregator", "resident, idle: aggregator", "MB", 0, {"four": 70}),
    Quantity("idle-core", "resident, idle: core", "MB", 0, {"four": 70}),
    Quantity("idle-extensions", "resident, idle: extensions", "MB", 0, {"four": 70}),
    Quantity("idle-auth", "resident, idle: auth", "MB", 0, {"four": 70}),
    Quantity("pods", "resident with 10,000 pods", "MB", 680, {}),
    Quantity("peak", "peak during 20 concurrent LISTs of these pods", "MB", 980, {"embedded": 259, "four": 259}),
)
_FLOODS: Final = (
    Quantity("flood-quiet", "p99 of one user's GETs, 4 ms apart, without other load", "ms", 0, {}),
    Quantity(
        "flood-get",
        "p99 during another user's flood of GETs (64 connections), as a multiple",
        "×",
        3.9,
        {"embedded": 2, "four": 2},
    ),
    Quantity(
        "flood-list",
        "p99 during another user's flood of LISTs of 500 pods, as a multiple",
        "×",
        12.6,
        {"embedded": 2, "four": 2},
    ),
    Quantity(
        "flood-write",
        "p99 during another user's flood of PATCHes, as a multiple",
        "×",
        7.8,
        {"embedded": 2, "four": 2},
    ),
    Quantity(
        "flood-streams",
        "p99 during another user's flood of GETs (1,000 streams of one HTTP/2 connection), as a multiple",
        "×",
        0,
        {"embedded": 2, "four": 2},
    ),
)
_DEFINITIONS: Final = (
    Quantity("crd", "memory of each of 2,000 idle CRDs (24 kB schema)", "MB", 2.36, {"embedded": 0.1, "four": 0.1}),
    Quantity(
        "crd-served",
        "with 2,000 CRDs: one more is served after its create response, median",
        "ms",
        0,
        {"embedded": 50, "four": 50},
    ),
    Quantity("crd-start", "with 2,000 CRDs: cold start to ready", "s", 0, {"embedded": 3, "four": 3}),
    Quantity(
        "crd-discovery", "with 2,000 CRDs: aggregated discovery, warm, median", "ms", 0, {"embedded": 50, "four": 50}
    ),
    Quantity("crd-openapi", "with 2,000 CRDs: first GET of /openapi/v2", "s", 0, {}),
    Quantity(
        "crd-openapi-peak",
        "with 2,000 CRDs: peak memory of that GET, relative to its size",
        "×",
        0,
        {"embedded": 2, "four": 2},
    ),
    Quantity(
        "crd-stall", "with 2,000 CRDs: longest wait of a small GET during it", "ms", 0, {"embedded": 50, "four": 50}
    ),
)
TABLES: Final = {
    "Start and memory": _MEMORY,
    "GETs of one user while another floods the server": _FLOODS,
    "Custom resource definitions": _DEFINITIONS,
}
"""The quantities of each table, by its heading."""
QUANTITIES: Final = (*_MEMORY, *_FLOODS, *_DEFINITIONS)
