"""Columns of apps, batch, autoscaling and policy.

Upstream: pkg/printers/internalversion/printers.go, printDeployment, printJob, printHorizontalPodAutoscaler and others.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core import cells
from tetrapod.core.cells import AGE, NAME, NONE, age, containers, name_of, pod_template, selector_text, spec_of, status_of
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor


def _deployment_row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        age(obj),
        *containers(pod_template(obj)),
        selector_text(spec["selector"]) if spec.get("selector") else "",  # the object of a bookmark event has no selector
    ]


DEPLOYMENTS: Final = TableConvertor(
    (
        NAME,
        Column("Ready"),
        Column("Up-to-date"),
        Column("Available"),
        AGE,
        cells.CONTAINERS,
        cells.IMAGES,
        cells.SELECTOR,
    ),
    _deployment_row,
)


def _replica_set_row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        spec.get("replicas") or 0,
        status.get("replicas") or 0,
        status.get("readyReplicas") or 0,
        age(obj),
        *containers(pod_template(obj)),
        selector_text(spec.get("selector")),
    ]


REPLICA_SETS: Final = TableConvertor(
    (
        NAME,
        Column("Desired", "integer"),
        Column("Current", "integer"),
        Column("Ready", "integer"),
        AGE,
        cells.CONTAINERS,
        cells.IMAGES,
        cells.SELECTOR,
    ),
    _replica_set_row,
)


def _stateful_set_row(obj: Object) -> list[Any]:
    ready, desired = status_of(obj).get("readyReplicas") or 0, spec_of(obj).get("replicas") or 0
    return [name_of(obj), f"{ready}/{desired}", age(obj), *containers(pod_template(obj))]


STATEFUL_SETS: Final = TableConvertor(
    (NAME, Column("Ready"), AGE, cells.CONTAINERS, cells.IMAGES),
    _stateful_set_row,
)


def _daemon_set_row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    node_selector = (pod_template(obj)).get("nodeSelector") or {}
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    return [
        name_of(obj),
        *(status.get(count) or 0 for count in counts),
        ",".join(f"{k}={node_selector[k]}" for k in sorted(node_selector)) or NONE,
        age(obj),
        *containers(pod_template(obj)),
        selector_text(spec.get("selector")),
    ]


DAEMON_SETS: Final = TableConvertor(
    (
        NAME,
        Column("Desired", "integer"),
        Column("Current", "integer"),
        Column("Ready", "integer"),
        Column("Up-to-date", "integer"),
        Column("Available", "integer"),
        Column("Node Selector"),
        AGE,
        cells.CONTAINERS,
        cells.IMAGES,
        cells.SELECTOR,
    ),
    _daemon_set_row,
)


def _controller_revision_row(obj: Object) -> list[Any]:
    owner = next((o for o in obj["metadata"].get("ownerReferences") or [] if o.get("controller")), None)
    controller = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        controller = f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return [name_of(obj), controller, obj.get("revision") or 0, age(obj)]


CONTROLLER_REVISIONS: Final = TableConvertor(
    (
        NAME,
        Column("Controller"),
        Column("Revision"),
        AGE,
    ),
    _controller_revision_row,
)
