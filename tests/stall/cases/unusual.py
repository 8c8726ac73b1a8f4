"""Further kinds, subresources and query parameters, by administrators of a namespace and by users."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import orjson

from stall.case import BODY, HEAD, Case
from stall.message import APPLY, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Message
from stall.setup import GROUP, MAPS, SPACE, STRUCTUREDS

_PODS: Final = f"{SPACE}/pods"


def _create(name: str, resource: str, body: Callable[[int], dict[str, Any]], who: str = "editor") -> Case:
    group = resource.rpartition("/")[0]
    space = SPACE.replace("/api/v1", f"/apis/{group}") if group else SPACE

    def message(n: int) -> Message:
        obj = orjson.dumps({"metadata": {"generateName": "a"}, **body(n)})
        return Message("POST", f"{space}/{resource.rpartition('/')[2]}?dryRun=All", body=obj)

    return Case(name, who, message)


def _claim(name: str, requests: Callable[[int], list[dict[str, Any]]], **more: Any) -> Case:
    return _create(
        f"ResourceClaim: {name}",
        "resource.k8s.io/v1/resourceclaims",
        lambda n: {"spec": {"devices": {"requests": requests(n), **more}}},
    )


def _exactly(n: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"r{i}", "exactly": {"deviceClassName": "c", **fields}} for i in range(n)]


def _cel(expression: str) -> dict[str, Any]:
    return {"cel": {"expression": expression}}


def _structured(name: str, spec: Callable[[int], dict[str, Any]]) -> Case:
    def message(n: int) -> Message:
        head = {"apiVersion": f"{GROUP}/v1", "kind": "Structured", "metadata": {"generateName": "a"}}
        return Message("POST", f"{STRUCTUREDS}?dryRun=All", body=orjson.dumps({**head, "spec": spec(n)}))

    return Case(f"structured: {name}", "user", message)


def _get(name: str, path: Callable[[int], str], who: str = "editor", method: str = "GET") -> Case:
    return Case(name, who, lambda n: Message(method, path(n)), HEAD)


def _patch(name: str, path: str, media_type: str, body: Callable[[int], Any], who: str = "editor") -> Case:
    return Case(name, who, lambda n: Message("PATCH", path, body=orjson.dumps(body(n)), media_type=media_type), BODY)


def _token(start: str) -> str:
    position = orjson.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": start})
    return base64.urlsafe_b64encode(position).rstrip(b"=").decode()


def _post(name: str, path: str, body: Callable[[int], dict[str, Any]], who: str = "editor") -> Case:
    return Case(name, who, lambda n: Message("POST", path, body=orjson.dumps(body(n))), BODY)


def _delete(name: str, path: str, body: Callable[[int], Any]) -> Case:
    return Case(name, "user", lambda n: Message("DELETE", path, body=orjson.dumps(body(n))), BODY)


_RANGES: Final = "service.beta.kubernetes.io/load-balancer-source-ranges"
_CONTROLLER: Final = f"{SPACE}/replicationcontrollers/none"
_SELECTORS: Final = " && ".join(["device.attributes['a.example.com'].b == 'c'"] * 150)


def _expressions(name: str, rest: str) -> Case:
    """Return a case of device selectors that all differ: each begins with a number of its own."""

    def requests(n: int) -> list[dict[str, Any]]:
        made = []
        for i in range(min(n, 32)):
            selectors = [_cel(f"device.driver == 'd{i}-{j}' && {rest}") for j in range(32)]
            made.append({"name": f"r{i}", "exactly": {"deviceClassName": "c", "selectors": selectors}})
        return made

    return _claim(name, requests)


CASES: Final = [
    _claim("selectors of one request", lambda n: _exactly(1, selectors=[_cel("true")] * n)),
    _claim("one long expression", lambda n: _exactly(1, selectors=[_cel("true" + " && true" * n)])),
    _claim("long expressions", lambda n: _exactly(min(n, 32), selectors=[_cel(_SELECTORS)] * 32)),
    _expressions("different expressions", _SELECTORS),
    _expressions("expressions with a syntax error", "a.b[0] + " * 215),
    _expressions("expressions of unknown names", " && ".join(["a"] * 2000)),
    _claim("tolerations", lambda n: _exactly(1, tolerations=[{"key": f"k{i}"} for i in range(n)])),
    _claim(
        "alternatives",
        lambda n: [{"name": "r", "firstAvailable": [{"name": f"s{i}", "deviceClassName": "c"} for i in range(n)]}],
    ),
    _create(
        "ResourceClaim: constraints",
        "resource.k8s.io/v1/resourceclaims",
        lambda n: {
            "spec": {
                "devices": {
                    "requests": _exactly(1),
                    "constraints": [{"requests": ["r0"] * 30, "matchAttribute": f"a/{i}"} for i in range(n)],
                }
            }
        },
    ),
    _create(
        "ResourceClaim: opaque parameters",
        "resource.k8s.io/v1/resourceclaims",
        lambda n: {
            "spec": {
                "devices": {
                    "requests": _exactly(1),
                    "config": [{"opaque": {"driver": "a", "parameters": {f"k{i}": "v" for i in range(n)}}}],
                }
            }
        },
    ),
    _create(
        "HorizontalPodAutoscaler: selectors of metrics",
        "autoscaling/v2/horizontalpodautoscalers",
        lambda n: {
            "spec": {
                "maxReplicas": 2,
                "scaleTargetRef": {"kind": "Deployment", "name": "a"},
                "metrics": [
                    {
                        "type": "External",
                        "external": {
                            "metric": {"name": "m", "selector": {"matchLabels": {f"k{i}": "v" for i in range(n)}}},
                            "target": {"type": "Value", "value": "1"},
                        },
                    }
                ],
            }
        },
    ),
    _create(
        "HorizontalPodAutoscaler: policies",
        "autoscaling/v2/horizontalpodautoscalers",
        lambda n: {
            "spec": {
                "maxReplicas": 2,
                "scaleTargetRef": {"kind": "Deployment", "name": "a"},
                "behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}] * n}},
            }
        },
    ),
    _create(
        "NetworkPolicy: values of a selector",
        "networking.k8s.io/v1/networkpolicies",
        lambda n: {
            "spec": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["v"] * n}]}}
        },
    ),
    _create(
        "Ingress: rules of bad hosts",
        "networking.k8s.io/v1/ingresses",
        lambda n: {"spec": {"rules": [{"host": f"*.{i}._"} for i in range(n)]}},
    ),
    _create(
        "Job: indexes of success",
        "batch/v1/jobs",
        lambda n: {
            "spec": {
                "completionMode": "Indexed",
                "completions": 100_000,
                "parallelism": 1,
                "successPolicy": {"rules": [{"succeededIndexes": ",".join(str(2 * i) for i in range(n))}]},
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
            }
        },
    ),
    _create(
        "Job: rules of success",
        "batch/v1/jobs",
        lambda n: {
            "spec": {
                "completionMode": "Indexed",
                "completions": 100_000,
                "parallelism": 1,
                "successPolicy": {"rules": [{"succeededCount": 1}] * n},
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
            }
        },
    ),
    _create(
        "Service: annotated source ranges",
        "services",
        lambda n: {
            "metadata": {
                "generateName": "a",
                "annotations": {
                    "service.beta.kubernetes.io/load-balancer-source-ranges": ",".join(
                        f"10.0.0.{i}/8" for i in range(n)
                    )
                },
            },
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        },
    ),
    _create(
        "Pod: annotations of AppArmor",
        "pods",
        lambda n: {
            "metadata": {
                "generateName": "a",
                "annotations": {f"container.apparmor.security.beta.kubernetes.io/c{i}": "x" for i in range(n)},
            },
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    ),
    _create(
        "Pod: ephemeral volumes",
        "pods",
        lambda n: {
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "volumes": [
                    {"name": f"v{i}", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["x"]}}}}
                    for i in range(n)
                ],
            }
        },
    ),
    _create(
        "Pod: container with resource claims",
        "pods",
        lambda n: {
            "spec": {
                "resourceClaims": [{"name": f"c{i}", "resourceClaimName": "a"} for i in range(n)],
                "containers": [
                    {"name": "c", "image": "i", "resources": {"claims": [{"name": f"c{i}"} for i in range(n)]}}
                ],
            }
        },
    ),
    _create(
        "ServiceAccount: many secrets", "serviceaccounts", lambda n: {"secrets": [{"name": f"s{i}"} for i in range(n)]}
    ),
    _create("Lease: long holder", "coordination.k8s.io/v1/leases", lambda n: {"spec": {"holderIdentity": "x" * n}}),
    _create(
        "Event: long message",
        "events",
        lambda n: {"involvedObject": {"namespace": "stall"}, "message": "x" * n, "reason": "y"},
        "user",
    ),
    _create(
        "StatefulSet: containers",
        "apps/v1/statefulsets",
        lambda n: {"spec": {"template": {"spec": {"containers": [{"name": f"c{i}"} for i in range(n)]}}}},
    ),
    _create(
        "DaemonSet: empty containers",
        "apps/v1/daemonsets",
        lambda n: {"spec": {"template": {"spec": {"containers": [{}] * n}}}},
    ),
    _get("exec: commands", lambda n: f"{_PODS}/none/exec?" + "&".join(["command=a"] * n)),
    _get("port-forward: ports", lambda n: f"{_PODS}/none/portforward?" + "&".join(f"ports={i}" for i in range(n))),
    _get("log: parameters", lambda n: f"{_PODS}/none/log?" + "&".join(f"tailLines={i}" for i in range(n))),
    _get("proxy: path", lambda n: f"{_PODS}/none/proxy/" + "a/" * n),
    _get("list: continue token", lambda n: f"{MAPS}?limit=1&continue=" + _token("a" * n), "user"),
    _get("list: continue token of brackets", lambda n: f"{MAPS}?limit=1&continue=" + "W1tb" * n, "user"),
    _get("list: long resource version", lambda n: f"{MAPS}?resourceVersion=" + "9" * n, "user"),
    _get("watch: long timeout", lambda n: f"{MAPS}?watch=1&timeoutSeconds=" + "9" * n, "user"),
    _get("watch: long resource version", lambda n: f"{MAPS}?watch=1&resourceVersion=" + "1" * n, "user"),
    _get("list: metadata.name selector", lambda n: f"{MAPS}?fieldSelector=metadata.name%3D" + "a" * n, "user"),
    _get("list: shard selector", lambda n: f"{MAPS}?shardSelector=" + "a||" * n, "user"),
    _delete("delete: preconditions", f"{MAPS}/none", lambda n: {"preconditions": {"uid": "x" * n}}),
    _delete("delete: dry runs", f"{MAPS}/none", lambda n: {"dryRun": ["All"] * n}),
    _delete("delete: unknown fields", f"{MAPS}/none", lambda n: {f"k{i}": {} for i in range(n)}),
    _post("eviction: unknown fields", f"{_PODS}/none/eviction", lambda n: {f"k{i}": {} for i in range(n)}),
    _post(
        "binding: labels",
        f"{_PODS}/none/binding",
        lambda n: {"target": {"name": "x"}, "metadata": {"labels": {f"k{i}": "v" for i in range(n)}}},
    ),
    _patch("scale: JSON patch", f"{_CONTROLLER}/scale", JSON_PATCH, lambda n: [{"op": "add"}] * n),
    _patch(
        "ephemeral containers of a pod that does not exist",
        f"{_PODS}/none/ephemeralcontainers",
        STRATEGIC_PATCH,
        lambda n: {"spec": {"ephemeralContainers": [{"name": f"c{i}"} for i in range(n)]}},
    ),
    _patch(
        "status: merge patch", f"{STRUCTUREDS}/one/status", MERGE_PATCH, lambda n: {"status": {"a": "x" * n}}, "user"
    ),
    _patch(
        "structured: apply a set",
        f"{STRUCTUREDS}/applied?fieldManager=a&dryRun=All",
        APPLY,
        lambda n: {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Structured",
            "metadata": {"name": "applied"},
            "spec": {"set": [f"v{i}" for i in range(n)]},
        },
        "user",
    ),
    _structured("dates", lambda n: {"dates": ["2024-01-01T00:00:00Z"] * n}),
    _structured("bad dates", lambda n: {"dates": [f"2024-01-0{i}" for i in range(n)]}),
    _structured("addresses", lambda n: {"addresses": ["::ffff:1.2.3.4"] * n}),
    _structured("bytes", lambda n: {"bytes": "YWJj" * n}),
    _structured("alternatives", lambda n: {"alternatives": [{"a": 1}] * n}),
    _structured("alternatives without a match", lambda n: {"alternatives": [{"c": 1}] * n}),
    _structured("integers or strings", lambda n: {"either": ["50%"] * n}),
    _structured("unique items", lambda n: {"set": [f"v{i}" for i in range(n)]}),
    _structured("map with a rule for each key", lambda n: {"ruled": {f"k{i}": "v" for i in range(n)}}),
    _structured("patterns", lambda n: {"patterns": ["a" * 30 + "b"] * n}),
    _structured("embedded labels", lambda n: {"template": {"metadata": {"labels": {f"k {i}": "v" for i in range(n)}}}}),
    _structured("pruned fields", lambda n: {f"unknown{i}": {} for i in range(n)}),
    _structured("values of an enumeration", lambda n: {"words": ["d"] * n}),
]
