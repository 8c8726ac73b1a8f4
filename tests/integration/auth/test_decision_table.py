"""A thousand decisions of Node, ABAC and RBAC together, compared with a reference implementation.

The reference is slow and plain: it reads raw objects and visits all of them for each decision. It shares no code with
the authorizers.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tetrapod.auth.authorizers.configuration import AuthorizationOptions, from_modes
from tetrapod.auth.node.graph import VOLUMES
from tetrapod.auth.service import AuthOptions, AuthService
from tetrapod.auth.tokens.bound_objects import PODS
from tetrapod.generic.authorization.interface import Attributes, Decision
from tetrapod.generic.authorization.rbac_storage import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.storage.cacher.factory import CachingStorageFactory
from tetrapod.generic.storage.queries import ListQuery
from tetrapod.generic.storage.sqlite import SqliteBackend
from tetrapod.machinery.user import UserInfo

SEED = 1
NAMESPACES = ("red", "green", "kube-system")
NODES = ("n1", "n2", "n3")
RBAC_GROUP = "rbac.authorization.k8s.io"
NAMES = tuple(f"x{i}" for i in range(6))
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
RESOURCES = (
    ("", "pods"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "services"),
    ("apps", "deployments"),
    ("batch", "jobs"),
)
PATHS = ("/metrics", "/healthz", "/healthz/etcd", "/version", "/logs/a", "/logs/b/c")
USERS = [
    UserInfo("ann", groups=("system:authenticated", "devs")),
    UserInfo("ben", groups=("system:authenticated", "ops", "devs")),
    UserInfo("cat", groups=("system:authenticated",)),
    UserInfo(
        "system:serviceaccount:red:robot",
        groups=("system:serviceaccounts", "system:serviceaccounts:red", "system:authenticated"),
    ),
    UserInfo("system:anonymous", groups=("system:unauthenticated",)),
    UserInfo("root", groups=("system:masters", "system:authenticated")),
]
KUBELETS = [UserInfo(f"system:node:{name}", groups=("system:nodes", "system:authenticated")) for name in NODES]
IMPOSTORS = [
    UserInfo("system:node:n1", groups=("system:authenticated",)),
    UserInfo("n1", groups=("system:nodes", "system:authenticated")),
]


@dataclass
class World:
    """All objects, as plain dictionaries."""

    roles: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)  # (namespace or "", name)
    bindings: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # namespace or ""
    policies: list[dict[str, Any]] = field(default_factory=list)
    pods: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)


# --- the reference


def reference(world: World, asked: Attributes) -> str:
    """Return the authorizer that allows a request: `masters`, `node`, `abac` or `rbac`, or "" if none does."""
    if "system:masters" in asked.user.groups:
        return "masters"
    if node_allows(world, asked):
        return "node"
    if any(abac_allows(policy, asked) for policy in world.policies):
        return "abac"
    return "rbac" if rbac_allows(world, asked) else ""


def rbac_allows(world: World, asked: Attributes) -> bool:
    for namespace, binding in world.bindings:
        if namespace and (not asked.resource_request or namespace != asked.namespace):
            continue
        if not any(is_subject(subject, asked.user, namespace) for subject in binding.get("subjects") or []):
            continue
        reference_ = binding["roleRef"]
        rules = world.roles.get((namespace if reference_["kind"] == "Role" else "", reference_["name"]), [])
        if any(rule_allows(rule, asked) for rule in rules):
            return True
    return False


def is_subject(subject: dict[str, Any], user: UserInfo, namespace: str) -> bool:
    if subject["kind"] == "User":
        return bool(subject["name"] == user.name)
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    return user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject['name']}"


def rule_allows(rule: dict[str, Any], asked: Attributes) -> bool:
    verbs = rule.get("verbs") or []
    if "*" not in verbs and asked.verb not in verbs:
        return False
    if not asked.resource_request:
        urls = rule.get("nonResourceURLs") or []
        return any(url in ("*", asked.path) or (url.endswith("*") and asked.path.startswith(url[:-1])) for url in urls)
    groups, resources, names = (rule.get(key) or [] for key in ("apiGroups", "resources", "resourceNames"))
    wanted = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    matches = {"*", wanted} | ({f"*/{asked.subresource}"} if asked.subresource else set())
    return bool(
        ({"*", asked.group} & set(groups)) and (matches & set(resources)) and (not names or asked.name in names)
    )


def abac_allows(policy: dict[str, Any], asked: Attributes) -> bool:
    user, group = policy.get("user"), policy.get("group")
    if user == "*" or group == "*":
        user, group = None, "system:authenticated"
    if not user and not group:
        return False
    if (user and user != asked.user.name) or (group and group not in asked.user.groups):
        return False
    if policy.get("readonly") and asked.verb not in ("get", "list", "watch"):
        return False
    if not asked.resource_request:
        path = policy.get("nonResourcePath", "")
        return path in ("*", asked.path) or (path.endswith("*") and asked.path.startswith(path[:-1]))
    pairs = (("namespace", asked.namespace), ("resource", asked.resource), ("apiGroup", asked.group))
    return all(policy.get(key, "") in ("*", value) for key, value in pairs)


def node_allows(world: World, asked: Attributes) -> bool:
    if (
        "system:nodes" not in asked.user.groups
        or not asked.user.name.startswith("system:node:")
        or not asked.resource_request
    ):
        return False
    node, verb, name = asked.user.name.removeprefix("system:node:"), asked.verb, asked.name
    thing = (asked.resource, asked.namespace, name)
    match asked.resource:
        case "secrets" | "configmaps":
            return (
                verb in ("get", "list", "watch")
                and not asked.subresource
                and bool(name)
                and thing in needed(world, node)
            )
        case "persistentvolumeclaims" if asked.subresource == "status":
            return verb in ("update", "patch") and thing in needed(world, node)
        case "persistentvolumeclaims" | "persistentvolumes":
            return verb == "get" and not asked.subresource and thing in needed(world, node)
        case "serviceaccounts":
            token = verb == "create" and asked.subresource == "token"
            return (token or (verb == "get" and not asked.subresource)) and thing in needed(world, node)
        case "leases":
            own = verb == "create" or (verb in ("get", "update", "patch", "delete") and name == node)
            return own and asked.namespace == "kube-node-lease"
        case "csinodes":
            return not asked.subresource and (
                verb == "create" or (verb in ("get", "update", "patch", "delete") and name == node)
            )
        case "nodes":
            return verb in ("create", "update", "patch") or (verb in ("get", "list", "watch") and name == node)
        case "pods" if verb in ("get", "list", "watch"):
            return bool(name) and thing in needed(world, node)
        case "pods":
            return verb in ("create", "delete")
        case "services":
            return verb in ("get", "list", "watch")
    return False


def needed(world: World, node: str) -> set[tuple[str, str, str]]:
    """Return the objects that the pods of a node need, with the objects that those need."""
    found: set[tuple[str, str, str]] = set()
    for pod in world.pods:
        if pod["spec"].get("nodeName") != node:
            continue
        namespace = pod["metadata"]["namespace"]
        found.add(("pods", namespace, pod["metadata"]["name"]))
        if "kubernetes.io/config.mirror" in pod["metadata"].get("annotations", {}):
            continue
        found.add(("serviceaccounts", namespace, pod["spec"]["serviceAccountName"]))
        for volume in pod["spec"]["volumes"]:
            if "secret" in volume:
                found.add(("secrets", namespace, volume["secret"]["secretName"]))
            if "configMap" in volume:
                found.add(("configmaps", namespace, volume["configMap"]["name"]))
            if "persistentVolumeClaim" in volume:
                found.add(("persistentvolumeclaims", namespace, volume["persistentVolumeClaim"]["claimName"]))
    for volume in world.volumes:
        claim, secret = volume["spec"]["claimRef"], volume["spec"]["csi"]["nodePublishSecretRef"]
        if ("persistentvolumeclaims", claim["namespace"], claim["name"]) in found:
            found |= {
                ("persistentvolumes", "", volume["metadata"]["name"]),
                ("secrets", secret["namespace"], secret["name"]),
            }
    return found


# --- random objects and requests


def make(dice: random.Random) -> World:
    world = World()
    for number in range(60):
        namespace = dice.choice(("", *NAMESPACES))
        name = f"role{number}"
        world.roles[namespace, name] = [make_rule(dice, cluster=not namespace) for _ in range(dice.randint(1, 3))]
        kind = "ClusterRole" if not namespace else "Role"
        where = namespace or dice.choice(("", "", *NAMESPACES))
        reference_ = {"apiGroup": RBAC_GROUP, "kind": kind, "name": name if dice.random() < 0.9 else "gone"}
        subjects = [make_subject(dice) for _ in range(dice.randint(1, 2))]
        world.bindings.append(
            (where, {"metadata": {"name": f"b{number}"}, "roleRef": reference_, "subjects": subjects})
        )
    for _ in range(5):
        world.policies.append(make_policy(dice))
    for number in range(10):
        kinds: list[dict[str, Any]] = [
            {"secret": {"secretName": dice.choice(NAMES)}},
            {"configMap": {"name": dice.choice(NAMES)}},
            {"persistentVolumeClaim": {"claimName": dice.choice(NAMES)}},
        ]
        metadata: dict[str, Any] = {"name": f"x{number}", "namespace": dice.choice(NAMESPACES), "uid": f"u{number}"}
        if dice.random() < 0.15:
            metadata["annotations"] = {"kubernetes.io/config.mirror": "1"}
        spec: dict[str, Any] = {
            "serviceAccountName": dice.choice(NAMES),
            "volumes": dice.sample(kinds, dice.randint(1, 3)),
        }
        if dice.random() < 0.85:
            spec["nodeName"] = dice.choice(NODES)
        world.pods.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    for number, namespace in enumerate(NAMESPACES * 2):
        claim = {"namespace": namespace, "name": NAMES[number]}
        secret = {"namespace": dice.choice(NAMESPACES), "name": dice.choice(NAMES)}
        spec = {"claimRef": claim, "csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": secret}}
        world.volumes.append(
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": NAMES[number]}, "spec": spec}
        )
    return world


def make_rule(dice: random.Random, *, cluster: bool) -> dict[str, Any]:
    verbs = dice.choice((["*"], dice.sample(VERBS, 2), ["get", "list", "watch"]))
    if cluster and dice.random() < 0.3:
        return {
            "verbs": verbs,
            "nonResourceURLs": dice.choice((["/logs/*"], ["/healthz"], ["/metrics", "/healthz/*"], ["*"])),
        }
    group, resource = dice.choice(RESOURCES)
    resources = dice.choice(([resource], ["*"], [resource, f"{resource}/status"], ["*/scale"], [f"{resource}/log"]))
    rule: dict[str, Any] = {"verbs": verbs, "apiGroups": dice.choice(([group], [group], ["*"])), "resources": resources}
    if dice.random() < 0.3:
        rule["resourceNames"] = dice.sample(NAMES, 2)
    return rule


def make_subject(dice: random.Random) -> dict[str, Any]:
    kind = dice.choice(("User", "Group", "ServiceAccount"))
    if kind == "ServiceAccount":
        return {"kind": kind, "name": dice.choice(("robot", "other")), "namespace": dice.choice(("red", "green"))}
    names = ("ann", "ben", "cat") if kind == "User" else ("devs", "ops", "system:serviceaccounts:red", "nobody")
    return {"apiGroup": RBAC_GROUP, "kind": kind, "name": dice.choice(names)}


def make_policy(dice: random.Random) -> dict[str, Any]:
    policy: dict[str, Any] = dice.choice(
        ({"user": "cat"}, {"group": "ops"}, {"user": "ben", "group": "devs"}, {"user": "*"}, {"user": "ann"})
    )
    policy = {**policy, "readonly": dice.random() < 0.5}
    if dice.random() < 0.3:
        return {**policy, "nonResourcePath": dice.choice(("/logs/*", "/version", "/metrics"))}
    group, resource = dice.choice(RESOURCES)
    where = {"namespace": dice.choice((*NAMESPACES, "*")), "resource": resource}
    return {**policy, **where, "apiGroup": dice.choice((group, "*"))}


def questions(dice: random.Random, world: World) -> Iterator[Attributes]:
    for _ in range(900):
        user = dice.choice(USERS)
        if dice.random() < 0.2:
            yield Attributes(user, dice.choice(("get", "post")), path=dice.choice(PATHS))
            continue
        group, resource = dice.choice(RESOURCES)
        yield Attributes(
            user,
            dice.choice(VERBS),
            namespace=dice.choice(("", *NAMESPACES)),
            group=group,
            version="v1",
            resource=resource,
            subresource=dice.choice(("", "", "", "status", "scale", "log")),
            name=dice.choice(("", *NAMES)),
            resource_request=True,
        )
    for _ in range(400):
        yield node_question(dice, world)


def node_question(dice: random.Random, world: World) -> Attributes:
    user = dice.choice([*KUBELETS, *KUBELETS, *IMPOSTORS])
    groups = {"leases": "coordination.k8s.io", "csinodes": "storage.k8s.io", "deployments": "apps"}
    related = ("secrets", "configmaps", "persistentvolumeclaims", "persistentvolumes", "serviceaccounts", "pods")
    if dice.random() < 0.5:  # an object that some node needs
        resource, namespace, name = dice.choice(sorted(needed(world, dice.choice(NODES))))
        subresource = "token" if resource == "serviceaccounts" and dice.random() < 0.5 else ""
        verb = dice.choice(("get", "get", "watch", "create"))
        return Attributes(
            user,
            verb,
            namespace=namespace,
            resource=resource,
            name=name,
            subresource=subresource,
            resource_request=True,
        )
    resource = dice.choice((*related, "leases", "csinodes", "nodes", "services", "deployments"))
    cluster = resource in ("persistentvolumes", "csinodes", "nodes")
    own = resource in ("leases", "csinodes", "nodes")
    return Attributes(
        user,
        dice.choice(VERBS),
        namespace=""
        if cluster
        else "kube-node-lease"
        if resource == "leases" and dice.random() < 0.7
        else dice.choice(NAMESPACES),
        group=groups.get(resource, ""),
        resource=resource,
        name=dice.choice(("", *NODES)) if own else dice.choice(("", *NAMES)),
        subresource="status" if resource == "persistentvolumeclaims" and dice.random() < 0.4 else "",
        resource_request=True,
    )


# --- the real authorizers


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[tuple[World, AuthService]]:
    world = make(random.Random(SEED))
    backend = SqliteBackend(":memory:")
    storage = CachingStorageFactory(backend)
    for (namespace, name), rules in world.roles.items():
        config, key = (ROLES, f"{namespace}/{name}") if namespace else (CLUSTER_ROLES, name)
        await storage.resource(config).create(key, stored(config, name, namespace, rules=rules))
    for namespace, binding in world.bindings:
        name = binding["metadata"]["name"]
        config, key = (ROLE_BINDINGS, f"{namespace}/{name}") if namespace else (CLUSTER_ROLE_BINDINGS, name)
        about = {"roleRef": binding["roleRef"], "subjects": binding["subjects"]}
        await storage.resource(config).create(key, stored(config, name, namespace, **about))
    for pod in world.pods:
        await storage.resource(PODS).create(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", pod)
    for volume in world.volumes:
        await storage.resource(VOLUMES).create(volume["metadata"]["name"], volume)
    file = tmp_path / "policies.jsonl"
    head = {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy"}
    file.write_text("\n".join(json.dumps({**head, "spec": policy}) for policy in world.policies))
    authorization = AuthorizationOptions(from_modes(("Node", "ABAC", "RBAC")), policy_file=str(file))
    auth = AuthService(
        storage, AuthOptions(signing_key=ec.generate_private_key(ec.SECP256R1()), authorization=authorization)
    )
    lifecycle = Lifecycle()
    auth.register(lifecycle)
    await lifecycle.start()
    await learn_bootstrap_policy(world, storage)
    yield world, auth
    await lifecycle.stop()
    await storage.close()
    await backend.close()


def stored(config: Any, name: str, namespace: str, **about: Any) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"u-{name}"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": config.api_version, "kind": config.kind, "metadata": metadata, **about}


async def learn_bootstrap_policy(world: World, storage: CachingStorageFactory) -> None:
    """Roles and bindings that every cluster has."""
    for config in (CLUSTER_ROLES, ROLES):
        for entry in (await storage.resource(config).list(ListQuery())).entries:
            obj = entry.object()
            world.roles.setdefault(
                (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]), obj.get("rules") or []
            )
    known = {(namespace, binding["metadata"]["name"]) for namespace, binding in world.bindings}
    for config in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
        for entry in (await storage.resource(config).list(ListQuery())).entries:
            obj = entry.object()
            namespace = obj["metadata"].get("namespace", "")
            if (namespace, obj["metadata"]["name"]) not in known:
                world.bindings.append((namespace, obj))


async def test_every_decision_equals_that_of_the_reference(running: tuple[World, AuthService]) -> None:
    world, auth = running
    asked = {repr(question): question for question in questions(random.Random(SEED + 1), world)}
    seen: Counter[str] = Counter()
    wrong = []
    for question in asked.values():
        wanted = reference(world, question)
        answer = await auth.authorizer.authorize(question)
        seen[wanted] += 1
        if (answer.decision is Decision.ALLOW) is not bool(wanted) or answer.reason.startswith("RBAC: allowed") is not (
            wanted == "rbac"
        ):
            wrong.append((question, wanted, answer))
    assert not wrong, "\n".join(map(repr, wrong[:5]))
    assert seen.total() >= 1000, seen
    assert min(seen[kind] for kind in ("", "node", "abac", "rbac", "masters")) >= 40, seen
