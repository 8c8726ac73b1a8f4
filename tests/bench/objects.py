"""The objects that the benchmark creates."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

Object = dict[str, Any]

GROUP: Final = "bench.example.com"
NAMESPACE: Final = "bench"
LISTED: Final = "bench-pods"
WATCHED: Final = "bench-watched"
LABEL_VALUES: Final = 10
UPDATED: Final = 64
"""How many pods and slices are updated in turn."""


def namespace(name: str) -> Object:
    return {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}}


def service_account(name: str) -> Object:
    """The service account that pods need. No controller creates it on the real server, because they are not started."""
    return {"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": name}}


def config_map(name: str) -> Object:
    data = {f"key-{i}": f"value-{i}-" + "x" * 20 for i in range(10)}
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "data": data,
    }


def pod(name: str, group: int) -> Object:
    """A pod like those of a Deployment: about 2.9 kB with defaults, the service account's volume and managedFields."""
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "256Mi"}}
    container = {
        "name": "server",
        "image": "registry.example.com/team/server:v1.2.3",
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "MODE", "value": "production"}],
        "resources": resources,
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "labels": {"app": "bench", "batch": str(group)},
            "annotations": {"example.com/owner": "team-bench"},
        },
        "spec": {"containers": [container]},
    }


def pod_status(message: str) -> Object:
    """Return a patch of the status of a `pod`, as kubelets send it."""
    now, address = "2026-11-21T10:12:20Z", "10.1.0.1"
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
    conditions = [
        {"type": type, "status": "True", "observedGeneration": 1, "lastProbeTime": None, "lastTransitionTime": now}
        for type in types
    ]
    container = {
        "name": "server",
        "image": "registry.example.com/team/server:v1.2.3",
        "imageID": "",
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": now}},
    }
    status = {
        "$setElementOrder/conditions": [{"type": type} for type in (*types, "PodScheduled")],
        "conditions": conditions,
        "containerStatuses": [container],
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "message": message,
        "observedGeneration": 1,
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
    }
    return {"metadata": {}, "status": status}


def endpoint_slice(name: str, endpoints: int, version: str) -> Object:
    """Return a slice of a service with so many ready endpoints; `version` is a label."""
    conditions = {"ready": True, "serving": True, "terminating": False}
    listed = [
        {
            "addresses": [f"10.1.0.{number}"],
            "conditions": conditions,
            "nodeName": "node-0",
            "targetRef": {"kind": "Pod", "name": f"pod-{number}", "namespace": NAMESPACE, "uid": f"uid-{number}"},
        }
        for number in range(endpoints)
    ]
    return {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "server", "version": version}},
        "addressType": "IPv4",
        "endpoints": listed,
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }


def pods(count: int) -> Iterator[Object]:
    return (pod(f"pod-{i:05}", i % LABEL_VALUES) for i in range(count))


def crd(number: int) -> Object:
    """A definition whose schema has 24 kB of JSON."""
    plural = f"things{number}"
    fields = {
        f"field{i}": {
            "type": "object",
            "description": f"Field {i} of the specification, " + "described at some length as such fields are. " * 4,
            "properties": {
                "name": {"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
                "count": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
                "items": {
                    "type": "array",
                    "items": {"type": "string"},
                    "x-kubernetes-list-type": "set",
                    "maxItems": 64,
                },
            },
            "required": ["name"],
        }
        for i in range(46)
    }
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": fields}, "status": {"type": "object"}},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": f"{plural}.crds.{GROUP}"},
        "spec": {
            "group": f"crds.{GROUP}",
            "scope": "Namespaced",
            "names": {
                "plural": plural,
                "singular": f"thing{number}",
                "kind": f"Thing{number}",
                "listKind": f"Thing{number}List",
            },
            "versions": [version],
        },
    }


RULED_GROUP: Final = f"ruled.{GROUP}"
RULED: Final = 64
"""The number of objects that are patched in turn."""
_RULES: Final = (
    {"rule": "self.field0.count <= self.field1.count", "message": "field0 must not count beyond field1"},
    {"rule": "self.field2.items.all(i, i.size() <= 20)"},
    {"rule": "self.field3.name == oldSelf.field3.name", "message": "field3 keeps its name"},
)


def ruled_crd() -> Object:
    """The same schema with three CEL rules, one of them a transition rule."""
    found = crd(0)
    names = {"plural": "ruled", "singular": "ruled", "kind": "Ruled", "listKind": "RuledList"}
    found["metadata"]["name"] = f"ruled.{RULED_GROUP}"
    found["spec"].update(group=RULED_GROUP, names=names)
    found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = list(
        _RULES
    )
    return found


def ruled(name: str) -> Object:
    """An object that sets twenty fields of the schema: 1.9 kB."""
    spec = {
        f"field{i}": {"name": f"name-{i}", "count": i, "items": [f"item-{i}-{j}" for j in range(4)]} for i in range(20)
    }
    return {
        "kind": "Ruled",
        "apiVersion": f"{RULED_GROUP}/v1",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": spec,
    }


def external_service() -> Object:
    spec = {"type": "ExternalName", "externalName": "localhost"}
    return {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "things"}, "spec": spec}


def api_service(port: int, ca: Path) -> Object:
    bundle = base64.b64encode(ca.read_bytes()).decode()
    service = {"namespace": NAMESPACE, "name": "things", "port": port}
    spec = {
        "group": GROUP,
        "version": "v1",
        "service": service,
        "caBundle": bundle,
        "groupPriorityMinimum": 1000,
        "versionPriority": 15,
    }
    return {
        "kind": "APIService",
        "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": f"v1.{GROUP}"},
        "spec": spec,
    }
