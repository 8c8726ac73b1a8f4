"""Pods and workloads in a namespace with a LimitRange, a ResourceQuota, Pod Security Standards and a RuntimeClass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from stall.case import Case
from stall.message import Message
from stall.setup import RESTRICTED, RUNTIME_CLASS


def _pod(name: str, spec: Callable[[int], dict[str, Any]]) -> Case:
    def message(n: int) -> Message:
        pod = {"metadata": {"generateName": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec(n)}}
        return Message("POST", f"/api/v1/namespaces/{RESTRICTED}/pods?dryRun=All", body=orjson.dumps(pod))

    return Case(f"restricted: {name}", "editor", message)


def _workload(name: str, spec: Callable[[int], dict[str, Any]]) -> Case:
    def message(n: int) -> Message:
        labels = {"a": "b"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec(n)}}
        body = {"metadata": {"generateName": "a"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
        path = f"/apis/apps/v1/namespaces/{RESTRICTED}/deployments?dryRun=All"
        return Message("POST", path, body=orjson.dumps(body))

    return Case(f"restricted: {name}", "editor", message)


def _containers(n: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"c{i}", "image": "i", **fields} for i in range(n)]


_REQUESTS: Final = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}}

CASES: Final = [
    _pod("containers", lambda n: {"containers": _containers(n)}),
    _pod("empty containers", lambda n: {"containers": [{}] * n}),
    _pod("init containers", lambda n: {"initContainers": _containers(n)}),
    _pod("containers with requests", lambda n: {"containers": _containers(n, **_REQUESTS)}),
    _pod("volumes", lambda n: {"volumes": [{"name": f"v{i}", "hostPath": {"path": "/a"}} for i in range(n)]}),
    _pod("sysctls", lambda n: {"securityContext": {"sysctls": [{"name": f"a.b{i}", "value": "1"} for i in range(n)]}}),
    _pod(
        "tolerations of a RuntimeClass",
        lambda n: {"runtimeClassName": RUNTIME_CLASS, "tolerations": [{"key": f"k{i}"} for i in range(n)]},
    ),
    _pod(
        "node selector of a RuntimeClass",
        lambda n: {"runtimeClassName": RUNTIME_CLASS, "nodeSelector": {f"k{i}": "v" for i in range(n)}},
    ),
    _workload("Deployment: containers", lambda n: {"containers": _containers(n)}),
    _workload("Deployment: empty containers", lambda n: {"containers": [{}] * n}),
]
