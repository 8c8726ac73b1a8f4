"""Checks of what the aggregation layer requires of an API server, each with its reason. `tetrapod check-apiserver`
runs them.

The requirements come from kube-aggregator's availability and discovery controllers, client-go, kubectl, and
https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tetrapod.generic.aggregated.conversation import MASTER, NOBODY, Answer, Conversation
from tetrapod.generic.discovery.negotiation import is_aggregated
from tetrapod.machinery.gvk import GroupVersion, Object

Outcome = Literal["pass", "fail", "skip"]
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_ABSENT: Final = "tetrapod-check-apiserver-absent"


class Failed(Exception):
    """A requirement is not met; the text describes how."""


class Skipped(Exception):
    """The check does not apply; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    check: str
    why: str
    outcome: Outcome
    detail: str = ""


@dataclass(slots=True)
class Subject:
    """The server under test, with the resources that an earlier check discovered."""

    talk: Conversation
    group_version: GroupVersion
    resources: list[Object] = field(default_factory=list)

    @property
    def root(self) -> str:
        """The path of the group-version."""
        return f"/apis/{self.group_version}"

    def listable(self) -> list[Object]:
        """Return the resources that support list. Raises Skipped if there are none."""
        resources = [r for r in self.resources if "list" in r.get("verbs", ()) and "/" not in r.get("name", "/")]
        if not resources:
            raise Skipped("nothing can be listed")
        return resources


Check = Callable[[Subject], None]
CHECKS: Final[list[tuple[str, str, Check]]] = []


def _check(name: str, why: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS.append((name, why, check))
        return check

    return register


def run_checks(subject: Subject) -> Iterator[Finding]:
    """Run all checks and yield their outcomes."""
    for name, why, check in CHECKS:
        try:
            check(subject)
        except Skipped as skipped:
            yield Finding(name, why, "skip", str(skipped))
        except Failed as failed:
            yield Finding(name, why, "fail", str(failed))
        except (OSError, http.client.HTTPException) as error:
            yield Finding(name, why, "fail", f"the connection broke: {error or type(error).__name__}")
        else:
            yield Finding(name, why, "pass")


def _must(answer: Answer, *codes: int) -> Answer:
    if answer.status not in codes:
        raise Failed(f"want {' or '.join(map(str, codes))}, got {answer}")
    return answer


def _object(answer: Answer, kind: str = "") -> Object:
    try:
        obj = answer.object
    except ValueError:
        raise Failed(f"the answer is no JSON object: {answer}") from None
    if kind and obj.get("kind") != kind:
        raise Failed(f"want kind {kind}, got {obj.get('kind')!r}")
    return obj


def _status(answer: Answer, reason: str) -> None:
    status = _object(answer, "Status")
    if status.get("code") != answer.status or status.get("reason") != reason or status.get("status") != "Failure":
        raise Failed(f"want a Status with status Failure, reason {reason} and code {answer.status}, got {json.dumps(status)[:200]}")


@_check("ready", "the aggregator and probes ask /readyz")
def ready(subject: Subject) -> None:
    """Check /readyz."""
    _must(subject.talk.ask("/readyz"), 200)


@_check("discovery", "an APIService is Available only if its group-version answers; clients learn from it what there is")
def discovery(subject: Subject) -> None:
    """Check the resource list of the group-version, and keep it for later checks."""
    resource_list = _object(_must(subject.talk.ask(subject.root), 200), "APIResourceList")
    if resource_list.get("groupVersion") != str(subject.group_version):
        raise Failed(f"groupVersion is {resource_list.get('groupVersion')!r}")
    for resource in resource_list.get("resources") or ():
        name = resource.get("name") or "?"
        if not resource.get("kind") or not isinstance(resource.get("namespaced"), bool) or not isinstance(resource.get("verbs"), list):
            raise Failed(f"the resource {name} lacks kind, namespaced or verbs")
        subject.resources.append(resource)


@_check("believes the front proxy", "users are who X-Remote-User says, on connections with the front proxy's certificate")
def believes(subject: Subject) -> None:
    """Check that the front proxy's identity headers are accepted."""
    _must(subject.talk.ask(subject.root, MASTER), 200)


@_check("believes nobody else", "anybody can send X-Remote-User: without the certificate it must mean nothing")
def believes_nobody_else(subject: Subject) -> None:
    """Check that identity headers without the front proxy's certificate are rejected."""
    for resource in subject.listable():
        answer = subject.talk.ask_without_certificate(f"{subject.root}/{resource['name']}", MASTER)
        if answer.status not in (401, 403):
            raise Failed(f"{resource['name']} are shown to whoever says to be system:masters: {answer}")


@_check("asks who may", "RBAC of the cluster decides (SubjectAccessReview); a user without rights gets a Status with reason Forbidden")
def asks_who_may(subject: Subject) -> None:
    """Check that a user without permissions gets a 403."""
    for resource in subject.listable():
        _status(_must(subject.talk.ask(f"{subject.root}/{resource['name']}", NOBODY), 403), "Forbidden")


_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@_check("aggregated discovery", "one request instead of one for each version; the aggregator asks for it first")
def aggregated_discovery(subject: Subject) -> None:
    """Check aggregated discovery, if it is offered."""
    answer = subject.talk.ask("/apis", accept=_AGGREGATED)
    if answer.status == 503:
        raise Failed("503: the aggregator takes the server for one that is away")
    if answer.status != 200 or _object(answer).get("kind") == "APIGroupList":
        raise Skipped("not offered: the aggregator falls back to the older form")
    document = _object(answer)
    if document.get("kind") != "APIGroupDiscoveryList":
        raise Failed(f"want kind APIGroupDiscoveryList or APIGroupList, got {document.get('kind')!r}")
    content_type = answer.headers.get("content-type", "")
    if not is_aggregated(content_type):
        raise Failed(f"its Content-Type is {content_type!r}: without the parameters of {_AGGREGATED} the aggregator does not read it")
    groups = {(group.get("metadata") or {}).get("name"): group for group in document.get("items") or ()}
    versions = [v.get("version") for v in (groups.get(subject.group_version.group) or {}).get("versions") or ()]
    if subject.group_version.version not in versions:
        raise Failed(f"{subject.group_version} is not in it")


@_check("OpenAPI", "kubectl explain, client-side validation and server-side apply of kubectl read it")
def openapi(subject: Subject) -> None:
    """Check that OpenAPI has schemas of all kinds."""
    index = subject.talk.ask("/openapi/v3")
    if index.status == 404:
        _object(_must(subject.talk.ask("/openapi/v2"), 200))
        raise Skipped("OpenAPI v3 is not offered; v2 is")
    paths = _object(_must(index, 200)).get("paths") or {}
    place = paths.get(subject.root[1:])
    if place is None:
        raise Failed(f"{subject.root[1:]} is not in the index of /openapi/v3")
    document = _object(_must(subject.talk.ask(place["serverRelativeURL"]), 200))
    kinds = {
        gvk.get("kind")
        for schema in (document.get("components") or {}).get("schemas", {}).values()
        for gvk in schema.get("x-kubernetes-group-version-kind") or ()
    }
    missing = {r["kind"] for r in subject.listable()} - kinds
    if missing:
        raise Failed(f"no schema has x-kubernetes-group-version-kind of {', '.join(sorted(missing))}")


@_check("lists", "a list says its kind and has metadata and items; items say nothing else than the list does")
def lists(subject: Subject) -> None:
    """Check the form of lists."""
    for resource in subject.listable():
        resource_list = _object(_must(subject.talk.ask(f"{subject.root}/{resource['name']}"), 200), f"{resource['kind']}List")
        if not isinstance(resource_list.get("metadata"), dict) or not isinstance(resource_list.get("items"), list):
            raise Failed(f"the list of {resource['name']} lacks metadata or items")


@_check("tables", "kubectl get asks for a Table, or else JSON: it must get one of the two")
def tables(subject: Subject) -> None:
    """Check that requests for a Table get a Table or a list."""
    for resource in subject.listable():
        table = _object(_must(subject.talk.ask(f"{subject.root}/{resource['name']}", accept=TABLE), 200))
        if table.get("kind") == "Table":
            width = len(table.get("columnDefinitions") or ())
            if any(len(row.get("cells") or ()) != width for row in table.get("rows") or ()):
                raise Failed(f"rows of {resource['name']} have not as many cells as there are columns")
        elif table.get("kind") != f"{resource['kind']}List":
            raise Failed(f"want a Table or a list of {resource['name']}, got {table.get('kind')!r}")


@_check("watches", "informers, kubectl get -w, garbage collection and quota watch: a stream of events that ends when it is told to")
def watches(subject: Subject) -> None:
    """Check that watches return events and end after their timeout."""
    watched = [r for r in subject.listable() if "watch" in r["verbs"]]
    if not watched:
        raise Skipped("nothing can be watched")
    for resource in watched:
        path = f"{subject.root}/{resource['name']}"
        revision = (_object(_must(subject.talk.ask(path), 200)).get("metadata") or {}).get("resourceVersion")
        if not revision:
            raise Failed(f"the list of {resource['name']} has no resourceVersion to watch from")
        answer = _must(subject.talk.ask(f"{path}?watch=1&timeoutSeconds=1&resourceVersion={revision}"), 200)
        for line in filter(None, answer.body.splitlines()):
            _event(resource["name"], line)


def _event(name: str, line: bytes) -> None:
    try:
        event: Any = json.loads(line)
    except ValueError:
        raise Failed(f"a watch of {name} is not one JSON object a line: {line[:100]!r}") from None
    if not isinstance(event, dict) or "type" not in event or "object" not in event:
        raise Failed(f"an event of {name} has no type or no object: {line[:100]!r}")


@_check("what is not there", "clients go on by reason and code of a Status, not by texts")
def not_there(subject: Subject) -> None:
    """Check the errors for missing objects and resources."""
    for resource in subject.listable():
        if "get" not in resource["verbs"]:
            continue
        location = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        _status(_must(subject.talk.ask(f"{subject.root}/{location}/{_ABSENT}"), 404), "NotFound")
    _must(subject.talk.ask(f"{subject.root}/{_ABSENT}"), 404)


@_check("bad bodies", "malformed JSON is a BadRequest, an unknown media type an UnsupportedMediaType: never a 500")
def bad_bodies(subject: Subject) -> None:
    """Check the errors for malformed bodies and unknown media types."""
    created = [r for r in subject.resources if "create" in r.get("verbs", ()) and "/" not in r["name"]]
    if not created:
        raise Skipped("nothing can be created")
    for resource in created:
        location = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        path = f"{subject.root}/{location}?dryRun=All"
        _status(_must(subject.talk.ask(path, method="POST", body=b"{", content_type="application/json"), 400), "BadRequest")
        _must(subject.talk.ask(path, method="POST", body=b"<a/>", content_type="application/xml"), 415)


@_check("dry runs", "kubectl --dry-run=server and diff: nothing may be stored")
def dry_runs(subject: Subject) -> None:
    """Check that a dry run stores nothing."""
    created = [r for r in subject.resources if {"create", "get"} <= set(r.get("verbs", ())) and "/" not in r["name"]]
    if not created:
        raise Skipped("nothing can be created and read")
    for resource in created:
        location = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        body = {"apiVersion": str(subject.group_version), "kind": resource["kind"], "metadata": {"name": _ABSENT}}
        answer = subject.talk.ask(
            f"{subject.root}/{location}?dryRun=All", method="POST", body=json.dumps(body).encode(), content_type="application/json"
        )
        if answer.status >= 500:
            raise Failed(f"an object without a spec of {resource['name']}: {answer}")
        _must(subject.talk.ask(f"{subject.root}/{location}/{_ABSENT}"), 404)
