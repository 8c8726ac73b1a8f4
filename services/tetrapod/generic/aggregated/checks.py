"""What the aggregation layer requires of a server, as checks, each with the reason why it matters. `tetrapod check-apiserver` runs them.

Upstream says it here and there: kube-aggregator's availability and discovery controllers, client-go, kubectl, and
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
    """What is not as it must be."""


class Skipped(Exception):
    """Why there was nothing to check."""


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    why: str
    outcome: Outcome
    detail: str = ""


@dataclass(slots=True)
class Subject:
    """The server, and what earlier checks found of it."""

    talk: Conversation
    group_version: GroupVersion
    resources: list[Object] = field(default_factory=list)

    @property
    def root(self) -> str:
        return f"/apis/{self.group_version}"

    def listable(self) -> list[Object]:
        found = [r for r in self.resources if "list" in r.get("verbs", ()) and "/" not in r.get("name", "/")]
        if not found:
            raise Skipped("nothing can be listed")
        return found


Check = Callable[[Subject], None]
CHECKS: Final[list[tuple[str, str, Check]]] = []


def _check(name: str, why: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS.append((name, why, check))
        return check

    return register


def run_checks(subject: Subject) -> Iterator[Finding]:
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
        found = answer.object
    except ValueError:
        raise Failed(f"the answer is no JSON object: {answer}") from None
    if kind and found.get("kind") != kind:
        raise Failed(f"want kind {kind}, got {found.get('kind')!r}")
    return found


def _status(answer: Answer, reason: str) -> None:
    found = _object(answer, "Status")
    if found.get("code") != answer.status or found.get("reason") != reason or found.get("status") != "Failure":
        raise Failed(f"want a Status with status Failure, reason {reason} and code {answer.status}, got {json.dumps(found)[:200]}")


@_check("ready", "the aggregator and probes ask /readyz")
def ready(subject: Subject) -> None:
    _must(subject.talk.ask("/readyz"), 200)


@_check("discovery", "an APIService is Available only if its group-version answers; clients learn from it what there is")
def discovery(subject: Subject) -> None:
    found = _object(_must(subject.talk.ask(subject.root), 200), "APIResourceList")
    if found.get("groupVersion") != str(subject.group_version):
        raise Failed(f"groupVersion is {found.get('groupVersion')!r}")
    for resource in found.get("resources") or ():
        name = resource.get("name") or "?"
        if not resource.get("kind") or not isinstance(resource.get("namespaced"), bool) or not isinstance(resource.get("verbs"), list):
            raise Failed(f"the resource {name} lacks kind, namespaced or verbs")
        subject.resources.append(resource)


@_check("believes the front proxy", "users are who X-Remote-User says, on connections with the front proxy's certificate")
def believes(subject: Subject) -> None:
    _must(subject.talk.ask(subject.root, MASTER), 200)


@_check("believes nobody else", "anybody can send X-Remote-User: without the certificate it must mean nothing")
def believes_nobody_else(subject: Subject) -> None:
    for resource in subject.listable():
        answer = subject.talk.ask_without_certificate(f"{subject.root}/{resource['name']}", MASTER)
        if answer.status not in (401, 403):
            raise Failed(f"{resource['name']} are shown to whoever says to be system:masters: {answer}")


@_check("asks who may", "RBAC of the cluster decides (SubjectAccessReview); a user without rights gets a Status with reason Forbidden")
def asks_who_may(subject: Subject) -> None:
    for resource in subject.listable():
        _status(_must(subject.talk.ask(f"{subject.root}/{resource['name']}", NOBODY), 403), "Forbidden")


_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@_check("aggregated discovery", "one request instead of one for each version; the aggregator asks for it first")
def aggregated_discovery(subject: Subject) -> None:
    answer = subject.talk.ask("/apis", accept=_AGGREGATED)
    if answer.status == 503:
        raise Failed("503: the aggregator takes the server for one that is away")
    if answer.status != 200 or _object(answer).get("kind") == "APIGroupList":
        raise Skipped("not offered: the aggregator falls back to the older form")
    found = _object(answer)
    if found.get("kind") != "APIGroupDiscoveryList":
        raise Failed(f"want kind APIGroupDiscoveryList or APIGroupList, got {found.get('kind')!r}")
    said = answer.headers.get("content-type", "")
    if not is_aggregated(said):
        raise Failed(f"its Content-Type is {said!r}: without the parameters of {_AGGREGATED} the aggregator does not read it")
    groups = {(group.get("metadata") or {}).get("name"): group for group in found.get("items") or ()}
    versions = [v.get("version") for v in (groups.get(subject.group_version.group) or {}).get("versions") or ()]
    if subject.group_version.version not in versions:
        raise Failed(f"{subject.group_version} is not in it")


@_check("OpenAPI", "kubectl explain, client-side validation and server-side apply of kubectl read it")
def openapi(subject: Subject) -> None:
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
    for resource in subject.listable():
        found = _object(_must(subject.talk.ask(f"{subject.root}/{resource['name']}"), 200), f"{resource['kind']}List")
        if not isinstance(found.get("metadata"), dict) or not isinstance(found.get("items"), list):
            raise Failed(f"the list of {resource['name']} lacks metadata or items")


@_check("tables", "kubectl get asks for a Table, or else JSON: it must get one of the two")
def tables(subject: Subject) -> None:
    for resource in subject.listable():
        found = _object(_must(subject.talk.ask(f"{subject.root}/{resource['name']}", accept=TABLE), 200))
        if found.get("kind") == "Table":
            width = len(found.get("columnDefinitions") or ())
            if any(len(row.get("cells") or ()) != width for row in found.get("rows") or ()):
                raise Failed(f"rows of {resource['name']} have not as many cells as there are columns")
        elif found.get("kind") != f"{resource['kind']}List":
            raise Failed(f"want a Table or a list of {resource['name']}, got {found.get('kind')!r}")


@_check("watches", "informers, kubectl get -w, garbage collection and quota watch: a stream of events that ends when it is told to")
def watches(subject: Subject) -> None:
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
    for resource in subject.listable():
        if "get" not in resource["verbs"]:
            continue
        where = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        _status(_must(subject.talk.ask(f"{subject.root}/{where}/{_ABSENT}"), 404), "NotFound")
    _must(subject.talk.ask(f"{subject.root}/{_ABSENT}"), 404)


@_check("bad bodies", "malformed JSON is a BadRequest, an unknown media type an UnsupportedMediaType: never a 500")
def bad_bodies(subject: Subject) -> None:
    created = [r for r in subject.resources if "create" in r.get("verbs", ()) and "/" not in r["name"]]
    if not created:
        raise Skipped("nothing can be created")
    for resource in created:
        where = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        path = f"{subject.root}/{where}?dryRun=All"
        _status(_must(subject.talk.ask(path, method="POST", body=b"{", content_type="application/json"), 400), "BadRequest")
        _must(subject.talk.ask(path, method="POST", body=b"<a/>", content_type="application/xml"), 415)


@_check("dry runs", "kubectl --dry-run=server and diff: nothing may be stored")
def dry_runs(subject: Subject) -> None:
    created = [r for r in subject.resources if {"create", "get"} <= set(r.get("verbs", ())) and "/" not in r["name"]]
    if not created:
        raise Skipped("nothing can be created and read")
    for resource in created:
        where = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        body = {"apiVersion": str(subject.group_version), "kind": resource["kind"], "metadata": {"name": _ABSENT}}
        answer = subject.talk.ask(
            f"{subject.root}/{where}?dryRun=All", method="POST", body=json.dumps(body).encode(), content_type="application/json"
        )
        if answer.status >= 500:
            raise Failed(f"an object without a spec of {resource['name']}: {answer}")
        _must(subject.talk.ask(f"{subject.root}/{where}/{_ABSENT}"), 404)
