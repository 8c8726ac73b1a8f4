"""Built-in kinds with lists of any length, by administrators of a namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from stall.case import BODY, Case
from stall.message import YAML, Message
from stall.setup import SPACE

_PODS: Final = f"{SPACE}/pods"
_LABELS: Final = {"app": "a"}


def _create(
    name: str,
    path: str,
    body: Callable[[int], dict[str, Any]],
    media_type: str = "application/json",
    dry: bool = True,
    limit: int = BODY,
) -> Case:
    def message(n: int) -> Message:
        query = "?dryRun=All" if dry else ""
        return Message(
            "POST",
            path + query,
            body=orjson.dumps({"metadata": {"generateName": "a"}, **body(n)}),
            media_type=media_type,
        )

    return Case(name, "editor", message, limit if dry else 500_000)


def _pod(name: str, spec: Callable[[int], dict[str, Any]]) -> Case:
    return _create(f"Pod: {name}", _PODS, lambda n: {"spec": {"containers": [{"name": "c", "image": "i"}], **spec(n)}})


def _container(name: str, fields: Callable[[int], dict[str, Any]]) -> Case:
    return _pod(name, lambda n: {"containers": [{"name": "c", "image": "i", **fields(n)}]})


def _other(kind: str, name: str, resource: str, spec: Callable[[int], dict[str, Any]]) -> Case:
    path = SPACE.replace("/api/v1", f"/apis/{resource.rpartition('/')[0]}") if "/" in resource else SPACE
    return _create(f"{kind}: {name}", f"{path}/{resource.rpartition('/')[2]}", spec)


def _service(name: str, spec: Callable[[int], dict[str, Any]]) -> Case:
    return _other("Service", name, "services", lambda n: {"spec": spec(n)})


def _slice(name: str, fields: Callable[[int], dict[str, Any]]) -> Case:
    head = {"addressType": "IPv4", "endpoints": []}
    return _other("EndpointSlice", name, "discovery.k8s.io/v1/endpointslices", lambda n: {**head, **fields(n)})


def _policy(name: str, spec: Callable[[int], dict[str, Any]]) -> Case:
    return _other(
        "NetworkPolicy",
        name,
        "networking.k8s.io/v1/networkpolicies",
        lambda n: {"spec": {"podSelector": {}, **spec(n)}},
    )


def _role(name: str, rules: Callable[[int], list[dict[str, Any]]], verb: str = "get") -> Case:
    return _other("Role", name, "rbac.authorization.k8s.io/v1/roles", lambda n: {"rules": rules(n)})


def _names(prefix: str, n: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(n)]


def _paths(n: int) -> list[dict[str, Any]]:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    return [{"path": f"/{i}", "pathType": "Prefix", "backend": backend} for i in range(n)]


def _template(**more: Any) -> dict[str, Any]:
    return {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "c", "image": "i", **more}]}}


def _affinity(n: int) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": ["a"]}]} for i in range(n)]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


CASES: Final = [
    _pod("containers", lambda n: {"containers": [{"name": f"c{i}", "image": "i"} for i in range(n)]}),
    _pod("one container again and again", lambda n: {"containers": [{"name": "c", "image": "i"}] * n}),
    _pod("empty containers", lambda n: {"containers": [{}] * n}),
    _create("Pod: empty containers, 30 kB", _PODS, lambda n: {"spec": {"containers": [{}] * n}}, limit=30_000),
    _create("Pod: empty tolerations, 30 kB", _PODS, lambda n: {"spec": {"tolerations": [{}] * n}}, limit=30_000),
    _create(
        "Pod: containers, stored",
        _PODS,
        lambda n: {"spec": {"containers": [{"name": f"c{i}"} for i in range(n)]}},
        dry=False,
    ),
    _pod("init containers", lambda n: {"initContainers": [{"name": f"c{i}", "image": "i"} for i in range(n)]}),
    _pod(
        "ephemeral containers", lambda n: {"ephemeralContainers": [{"name": f"c{i}", "image": "i"} for i in range(n)]}
    ),
    _pod("volumes", lambda n: {"volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(n)]}),
    _pod("one volume again and again", lambda n: {"volumes": [{"name": "v", "emptyDir": {}}] * n}),
    _pod("empty volumes", lambda n: {"volumes": [{}] * n}),
    _pod(
        "items of a volume",
        lambda n: {
            "volumes": [
                {"name": "v", "configMap": {"name": "a", "items": [{"key": "a", "path": f"{i}"} for i in range(n)]}}
            ]
        },
    ),
    _pod(
        "projected sources",
        lambda n: {
            "volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": f"a{i}"}} for i in range(n)]}}]
        },
    ),
    _pod(
        "name of an iSCSI target",
        lambda n: {"volumes": [{"name": "v", "iscsi": {"targetPortal": "t", "iqn": "iqn.2001-04.a" * n, "lun": 0}}]},
    ),
    _pod(
        "downward API files",
        lambda n: {
            "volumes": [
                {
                    "name": "v",
                    "downwardAPI": {
                        "items": [{"path": f"{i}", "fieldRef": {"fieldPath": "metadata.name"}} for i in range(n)]
                    },
                }
            ]
        },
    ),
    _pod("tolerations", lambda n: {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(n)]}),
    _pod("bad tolerations", lambda n: {"tolerations": [{"operator": "x"}] * n}),
    _pod("host aliases", lambda n: {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}] * n}),
    _pod("image pull secrets", lambda n: {"imagePullSecrets": [{"name": f"s{i}"} for i in range(n)]}),
    _pod("node selector", lambda n: {"nodeSelector": {f"k{i}": "v" for i in range(n)}}),
    _pod("terms of node affinity", _affinity),
    _pod(
        "topology spread constraints",
        lambda n: {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": f"k{i}", "whenUnsatisfiable": "DoNotSchedule"} for i in range(n)
            ]
        },
    ),
    _pod("readiness gates", lambda n: {"readinessGates": [{"conditionType": f"a.b/{i}"} for i in range(n)]}),
    _pod(
        "resource claims", lambda n: {"resourceClaims": [{"name": f"c{i}", "resourceClaimName": "a"} for i in range(n)]}
    ),
    _pod("scheduling gates", lambda n: {"schedulingGates": [{"name": f"a.b/{i}"} for i in range(n)]}),
    _pod("supplemental groups", lambda n: {"securityContext": {"supplementalGroups": list(range(n))}}),
    _pod(
        "sysctls",
        lambda n: {"securityContext": {"sysctls": [{"name": f"kernel.a{i}", "value": "1"} for i in range(n)]}},
    ),
    _pod("DNS searches", lambda n: {"dnsConfig": {"searches": _names("a", n)}, "dnsPolicy": "None"}),
    _pod("overhead", lambda n: {"overhead": {f"a.b/r{i}": "1" for i in range(n)}}),
    _container("env", lambda n: {"env": [{"name": f"e{i}", "value": "a"} for i in range(n)]}),
    _container("bad env", lambda n: {"env": [{"name": f"e={i}"} for i in range(n)]}),
    _container(
        "env with references",
        lambda n: {
            "env": [{"name": f"e{i}", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}} for i in range(n)]
        },
    ),
    _container(
        "env with a long field path",
        lambda n: {"env": [{"name": "e", "valueFrom": {"fieldRef": {"fieldPath": "['" * n}}}]},
    ),
    _container("sources of env", lambda n: {"envFrom": [{"configMapRef": {"name": f"m{i}"}} for i in range(n)]}),
    _container("ports", lambda n: {"ports": [{"containerPort": i % 65_000 + 1} for i in range(n)]}),
    _container("one port again and again", lambda n: {"ports": [{"containerPort": 80, "name": "a"}] * n}),
    _container(
        "host ports",
        lambda n: {"ports": [{"containerPort": i % 65_000 + 1, "hostPort": i % 65_000 + 1} for i in range(n)]},
    ),
    _container("volume mounts", lambda n: {"volumeMounts": [{"name": "v", "mountPath": f"/{i}"} for i in range(n)]}),
    _container("volume devices", lambda n: {"volumeDevices": [{"name": "v", "devicePath": f"/{i}"} for i in range(n)]}),
    _container("arguments", lambda n: {"args": ["a"] * n}),
    _container("references in arguments", lambda n: {"args": ["$(A)" * n]}),
    _container("one long image", lambda n: {"image": "a" * n}),
    _container("image of many segments", lambda n: {"image": "a/" * n + "b"}),
    _container("resources", lambda n: {"resources": {"limits": {f"a.b/r{i}": "1" for i in range(n)}}}),
    _container("bad resources", lambda n: {"resources": {"limits": {f"r{i}": "x" for i in range(n)}}}),
    _container("long quantity", lambda n: {"resources": {"limits": {"cpu": "9" * n}}}),
    _container("long fraction of a quantity", lambda n: {"resources": {"limits": {"cpu": "0." + "9" * n}}}),
    _container("capabilities", lambda n: {"securityContext": {"capabilities": {"add": _names("A", n)}}}),
    _container(
        "headers of a probe",
        lambda n: {
            "livenessProbe": {
                "httpGet": {"port": 80, "httpHeaders": [{"name": f"a{i}", "value": "b"} for i in range(n)]}
            }
        },
    ),
    _create(
        "Pod: YAML",
        _PODS,
        lambda n: {"spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": f"e{i}"} for i in range(n)]}]}},
        YAML,
    ),
    _create(
        "Pod: env, stored",
        _PODS,
        lambda n: {"spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": f"e{i}"} for i in range(n)]}]}},
        dry=False,
    ),
    _other(
        "Deployment",
        "env",
        "apps/v1/deployments",
        lambda n: {
            "spec": {
                "selector": {"matchLabels": _LABELS},
                "template": _template(env=[{"name": f"e{i}"} for i in range(n)]),
            }
        },
    ),
    _other(
        "Deployment",
        "selector",
        "apps/v1/deployments",
        lambda n: {"spec": {"selector": {"matchLabels": {f"k{i}": "v" for i in range(n)}}, "template": _template()}},
    ),
    _other(
        "Deployment",
        "requirements",
        "apps/v1/deployments",
        lambda n: {
            "spec": {
                "selector": {"matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"} for i in range(n)]},
                "template": _template(),
            }
        },
    ),
    _other(
        "StatefulSet",
        "claim templates",
        "apps/v1/statefulsets",
        lambda n: {
            "spec": {
                "serviceName": "a",
                "selector": {"matchLabels": _LABELS},
                "template": _template(),
                "volumeClaimTemplates": [{"metadata": {"name": f"c{i}"}} for i in range(n)],
            }
        },
    ),
    _other(
        "CronJob",
        "schedule",
        "batch/v1/cronjobs",
        lambda n: {
            "spec": {"schedule": "1" + ",1" * n + " * * * *", "jobTemplate": {"spec": {"template": _template()}}}
        },
    ),
    _other(
        "Job",
        "failure rules",
        "batch/v1/jobs",
        lambda n: {
            "spec": {
                "template": _template(),
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}] * n
                },
            }
        },
    ),
    _other(
        "Job",
        "exit codes",
        "batch/v1/jobs",
        lambda n: {
            "spec": {
                "template": _template(),
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": list(range(1, n))}}]
                },
            }
        },
    ),
    _service("IP families", lambda n: {"ports": [{"port": 1}], "ipFamilies": ["IPv4", "IPv6"] * n}),
    _service("ports", lambda n: {"ports": [{"port": i % 65_000 + 1, "name": f"p{i}"} for i in range(n)]}),
    _service("one port again and again", lambda n: {"ports": [{"port": 80, "name": "p"}] * n}),
    _service(
        "node ports",
        lambda n: {
            "type": "NodePort",
            "ports": [{"port": i % 65_000 + 1, "name": f"p{i}"} for i in range(min(n, 2_000))],
        },
    ),
    _service("external IPs", lambda n: {"ports": [{"port": 80}], "externalIPs": ["10.0.0.1"] * n}),
    _service(
        "source ranges",
        lambda n: {"type": "LoadBalancer", "ports": [{"port": 80}], "loadBalancerSourceRanges": ["10.0.0.0/8"] * n},
    ),
    _service("selector", lambda n: {"ports": [{"port": 80}], "selector": {f"k{i}": "v" for i in range(n)}}),
    _service("cluster IPs", lambda n: {"ports": [{"port": 80}], "clusterIPs": ["10.0.0.1"] * n}),
    _slice("endpoints", lambda n: {"endpoints": [{"addresses": ["10.0.0.1"]}] * n}),
    _slice(
        "addresses",
        lambda n: {"endpoints": [{"addresses": [f"10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}" for i in range(n)]}]},
    ),
    _slice("ports", lambda n: {"ports": [{"port": i % 65_000 + 1, "name": f"p{i}"} for i in range(n)]}),
    _slice("bad addresses", lambda n: {"endpoints": [{"addresses": ["x"]}] * n}),
    _other(
        "Endpoints",
        "addresses",
        "endpoints",
        lambda n: {
            "subsets": [
                {
                    "addresses": [{"ip": f"10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}"} for i in range(n)],
                    "ports": [{"port": 1}],
                }
            ]
        },
    ),
    _other(
        "Endpoints",
        "subsets",
        "endpoints",
        lambda n: {
            "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": i % 65_000 + 1}]} for i in range(n)]
        },
    ),
    _other(
        "Ingress",
        "rules",
        "networking.k8s.io/v1/ingresses",
        lambda n: {"spec": {"rules": [{"host": f"a{i}.b", "http": {"paths": _paths(1)}} for i in range(n)]}},
    ),
    _other(
        "Ingress",
        "paths",
        "networking.k8s.io/v1/ingresses",
        lambda n: {"spec": {"rules": [{"http": {"paths": _paths(n)}}]}},
    ),
    _other(
        "Ingress",
        "hosts of TLS",
        "networking.k8s.io/v1/ingresses",
        lambda n: {
            "spec": {"defaultBackend": _paths(1)[0]["backend"], "tls": [{"hosts": [f"a{i}.b" for i in range(n)]}]}
        },
    ),
    _policy("ports", lambda n: {"ingress": [{"ports": [{"port": i % 65_000 + 1} for i in range(n)]}]}),
    _policy("peers", lambda n: {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}] * n}]}),
    _policy("rules", lambda n: {"ingress": [{}] * n}),
    _policy(
        "exceptions of a block",
        lambda n: {"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"] * n}}]}]},
    ),
    _role(
        "rules",
        lambda n: [
            {"apiGroups": [""], "resources": ["pods"], "resourceNames": [f"{i}"], "verbs": ["get"]} for i in range(n)
        ],
    ),
    _role(
        "verbs, groups and resources",
        lambda n: [{"apiGroups": _names("g", n), "resources": _names("r", n), "verbs": _names("v", n)}],
    ),
    _role(
        "a hundred rules",
        lambda n: (
            [{"apiGroups": [""], "resources": _names("r", n // 100 + 1), "verbs": _names("v", n // 100 + 1)}] * 100
        ),
    ),
    _role(
        "resource names",
        lambda n: [{"apiGroups": [""], "resources": ["pods"], "resourceNames": _names("a", n), "verbs": ["get"]}],
    ),
    _role("paths", lambda n: [{"nonResourceURLs": _names("/a", n), "verbs": ["get"]}]),
    _other(
        "RoleBinding",
        "subjects",
        "rbac.authorization.k8s.io/v1/rolebindings",
        lambda n: {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"u{i}"} for i in range(n)],
        },
    ),
    _other(
        "Secret",
        "certificate without an end",
        "secrets",
        lambda n: {
            "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": "-----BEGIN CERTIFICATE-----\n" * n, "tls.key": ""},
        },
    ),
    _other("Secret", "entries", "secrets", lambda n: {"data": {f"k{i}": "QUFB" for i in range(n)}}),
    _other(
        "Secret",
        "registry credentials",
        "secrets",
        lambda n: {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "[" * n}},
    ),
    _other(
        "Secret",
        "certificate",
        "secrets",
        lambda n: {
            "type": "kubernetes.io/tls",
            "stringData": {
                "tls.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" * n,
                "tls.key": "",
            },
        },
    ),
    _other(
        "ServiceAccount", "secrets", "serviceaccounts", lambda n: {"secrets": [{"name": f"s{i}"} for i in range(n)]}
    ),
    _other(
        "PersistentVolumeClaim",
        "access modes",
        "persistentvolumeclaims",
        lambda n: {"spec": {"accessModes": ["ReadWriteOnce"] * n, "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    _other(
        "HorizontalPodAutoscaler",
        "metrics",
        "autoscaling/v2/horizontalpodautoscalers",
        lambda n: {
            "spec": {
                "maxReplicas": 2,
                "scaleTargetRef": {"kind": "Deployment", "name": "a"},
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 1}},
                    }
                ]
                * n,
            }
        },
    ),
    _other(
        "PodDisruptionBudget",
        "selector",
        "policy/v1/poddisruptionbudgets",
        lambda n: {
            "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": _names("v", n)}]}}
        },
    ),
    _other("Lease", "holder", "coordination.k8s.io/v1/leases", lambda n: {"spec": {"holderIdentity": "a" * n}}),
    _other(
        "ControllerRevision", "data", "apps/v1/controllerrevisions", lambda n: {"revision": 1, "data": {"a": [0] * n}}
    ),
    _other("Event", "note", "events", lambda n: {"message": "a" * n, "involvedObject": {"namespace": "stall"}}),
    _other(
        "ResourceClaim",
        "requests",
        "resource.k8s.io/v1/resourceclaims",
        lambda n: {
            "spec": {
                "devices": {"requests": [{"name": f"r{i}", "exactly": {"deviceClassName": "a"}} for i in range(n)]}
            }
        },
    ),
    _other(
        "PodTemplate",
        "env",
        "podtemplates",
        lambda n: {"template": _template(env=[{"name": f"e{i}"} for i in range(n)])},
    ),
]
