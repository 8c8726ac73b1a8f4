"""Columns of apps, batch, autoscaling and policy.

Upstream: pkg/printers/internalversion/printers.go, printDeployment, printJob, printHorizontalPodAutoscaler and others.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, NONE, age, containers, name_of, pod_template, seconds, selector_text, since, spec_of, status_of
from tetrapod.machinery.golang.durations import human_duration
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.table import Column, TableConvertor

_CONTAINERS: Final = Column("Containers", priority=1)
_IMAGES: Final = Column("Images", priority=1)
_SELECTOR: Final = Column("Selector", priority=1)


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
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
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
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _replica_set_row,
)


def _stateful_set_row(obj: Object) -> list[Any]:
    ready, desired = status_of(obj).get("readyReplicas") or 0, spec_of(obj).get("replicas") or 0
    return [name_of(obj), f"{ready}/{desired}", age(obj), *containers(pod_template(obj))]


STATEFUL_SETS: Final = TableConvertor(
    (NAME, Column("Ready"), AGE, _CONTAINERS, _IMAGES),
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
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
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


def _job_status(obj: Object) -> str:
    conditions = {c.get("type"): c.get("status") for c in status_of(obj).get("conditions") or []}
    if conditions.get("Complete") == "True":
        return "Complete"
    if conditions.get("Failed") == "True":
        return "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if conditions.get("Suspended") == "True":
        return "Suspended"
    if conditions.get("FailureTarget") == "True":
        return "FailureTarget"
    return "SuccessCriteriaMet" if conditions.get("SuccessCriteriaMet") == "True" else "Running"


def _job_row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    succeeded = status.get("succeeded") or 0
    if spec.get("completions") is not None:
        completions = f"{succeeded}/{spec['completions']}"
    else:
        parallelism = spec.get("parallelism") or 0
        completions = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    duration = ""
    if started := status.get("startTime"):
        ended = status.get("completionTime")
        duration = human_duration(seconds(ended) - seconds(started)) if ended else since(started)
    return [
        name_of(obj),
        _job_status(obj),
        completions,
        duration,
        age(obj),
        *containers(pod_template(obj)),
        selector_text(spec.get("selector")),
    ]


JOBS: Final = TableConvertor(
    (
        NAME,
        Column("Status"),
        Column("Completions"),
        Column("Duration"),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _job_row,
)


def _cron_job_row(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    last = status.get("lastScheduleTime")
    job_spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or []),
        since(last) if last else NONE,
        age(obj),
        *containers((job_spec.get("template") or {}).get("spec") or {}),
        selector_text(job_spec.get("selector")),
    ]


CRON_JOBS: Final = TableConvertor(
    (
        NAME,
        Column("Schedule"),
        Column("Timezone"),
        Column("Suspend", "boolean"),
        Column("Active", "integer"),
        Column("Last Schedule"),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    _cron_job_row,
)
