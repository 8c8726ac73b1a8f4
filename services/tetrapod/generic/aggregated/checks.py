"""Checks of the requirements that the aggregation layer has for an API server, each with its reason.

`tetrapod check-apiserver` runs them.

The requirements come from kube-aggregator's availability and discovery controllers, client-go, kubectl, and
https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer/.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tetrapod.generic.aggregated.check_client import MASTER, NOBODY, CheckClient, CheckResponse
from tetrapod.generic.discovery.negotiation import is_aggregated
from tetrapod.machinery.gvk import GroupVersion, Object

Outcome = Literal["pass", "fail", "skip"]
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_ABSENT: Final = "tetrapod-check-apiserver-absent"


class Failed(Exception):
    """The error that a check raises if the server does not meet the requirement. The text describes how."""


class Skipped(Exception):
    """The error that a check raises if it does not apply to the server. The text gives the reason."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Attributes:
        check: the name of the check.
        why: the clients that depend on the requirement, as text.
        outcome: `pass`, `fail` or `skip` (the check does not apply).
        detail: how the server fails, or why the check was skipped; "" if it passed.
    """

    check: str
    why: str
    outcome: Outcome
    detail: str = ""


@dataclass(slots=True)
class Subject:
    """The server under test.

    Attributes:
        client: sends requests to it.
        group_version: the group-version to check.
        resources: its APIResource documents with subresources, which the check `discovery` appends.
    """

    client: CheckClient
    group_version: GroupVersion
    resources: list[Object] = field(default_factory=list)

    @property
    def root(self) -> str:
        """The path of the group-version, `/apis/GROUP/VERSION`."""
        return f"/apis/{self.group_version}"

    def listable(self) -> list[Object]:
        """Return those of `resources` that support list, without subresources.

        Raises:
            Skipped: no resource supports it.
        """
        resources = [r for r in self.resources if "list" in r.get("verbs", ()) and "/" not in r.get("name", "/")]
        if not resources:
            raise Skipped("no resource supports list")
        return resources


Check = Callable[[Subject], None]
CHECKS: Final[list[tuple[str, str, Check]]] = []


def _check(name: str, why: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS.append((name, why, check))
        return check

    return register


def run_checks(subject: Subject) -> Iterator[Finding]:
    """Run all checks in order and yield the outcome of each when it is known. Connection errors are failures."""
    for name, why, check in CHECKS:
        try:
            check(subject)
        except Skipped as skipped:
            yield Finding(name, why, "skip", str(skipped))
        except Failed as failed:
            yield Finding(name, why, "fail", str(failed))
        except (OSError, http.client.HTTPException) as error:
            yield Finding(name, why, "fail", f"connection error: {error or type(error).__name__}")
        else:
            yield Finding(name, why, "pass")


def _must(answer: CheckResponse, *codes: int) -> CheckResponse:
    if answer.status not in codes:
        raise Failed(f"want {' or '.join(map(str, codes))}, got {answer}")
    return answer


def _object(answer: CheckResponse, kind: str = "") -> Object:
    try:
        obj = answer.object
    except ValueError:
        raise Failed(f"the response is not a JSON object: {answer}") from None
    if kind and obj.get("kind") != kind:
        raise Failed(f"want kind {kind}, got {obj.get('kind')!r}")
    return obj


def _status(answer: CheckResponse, reason: str) -> None:
    status = _object(answer, "Status")
    if status.get("code") != answer.status or status.get("reason") != reason or status.get("status") != "Failure":
        raise Failed(
            f"want a Status with status Failure, reason {reason} and code {answer.status}, "
            f"got {json.dumps(status)[:200]}"
        )


@_check(
    "certificate",
    "the aggregator verifies it by the caBundle of the APIService, for the name SERVICE.NAMESPACE.svc",
)
def certificate(subject: Subject) -> None:
    """Raise Failed unless the serving certificate is valid for the CA and the name that the aggregator expects.

    Raise Skipped if either is unknown.
    """
    if subject.client.ca is None or not subject.client.server_name:
        raise Skipped("set --certificate-authority and --service")
    try:
        subject.client.verify_certificate()
    except ssl.SSLError as error:
        raise Failed(str(error)) from None


@_check("ready", "the aggregator and probes request /readyz")
def ready(subject: Subject) -> None:
    """Raise Failed unless /readyz returns 200."""
    _must(subject.client.ask("/readyz"), 200)


@_check(
    "discovery",
    "an APIService is Available only if discovery of its group-version succeeds; clients find resources by it",
)
def discovery(subject: Subject) -> None:
    """Append the resources of the group-version to `subject.resources`.

    Raise Failed unless the group-version has a valid APIResourceList.
    """
    resource_list = _object(_must(subject.client.ask(subject.root), 200), "APIResourceList")
    if resource_list.get("groupVersion") != str(subject.group_version):
        raise Failed(f"groupVersion is {resource_list.get('groupVersion')!r}")
    for resource in resource_list.get("resources") or ():
        name = resource.get("name") or "?"
        if (
            not resource.get("kind")
            or not isinstance(resource.get("namespaced"), bool)
            or not isinstance(resource.get("verbs"), list)
        ):
            raise Failed(f"the resource {name} lacks kind, namespaced or verbs")
        subject.resources.append(resource)


@_check(
    "accepts identity headers of the front proxy",
    "the aggregator sends the user in X-Remote-User, with the front proxy's certificate",
)
def accepts_front_proxy(subject: Subject) -> None:
    """Raise Failed unless a request with the front proxy's certificate and identity headers gets a 200."""
    _must(subject.client.ask(subject.root, MASTER), 200)


@_check(
    "rejects identity headers of others",
    "any client can send X-Remote-User; without the front proxy's certificate it must be ignored",
)
def rejects_other_clients(subject: Subject) -> None:
    """Raise Failed unless lists get a 401 or 403 with identity headers, but without the front proxy's certificate.

    The server may also reject the connection. Raise Skipped if no resource supports list.
    """
    for resource in subject.listable():
        try:
            answer = subject.client.ask_without_certificate(f"{subject.root}/{resource['name']}", MASTER)
        except (ssl.SSLError, ConnectionError):
            _must(subject.client.ask(subject.root), 200)  # it accepts connections with the certificate
            continue
        if answer.status not in (401, 403):
            raise Failed(
                f"a client without certificate can read {resource['name']} "
                f"with X-Remote-Group: system:masters: {answer}"
            )


@_check(
    "authorizes requests",
    "RBAC of the cluster decides (SubjectAccessReview); a user without permission gets a Status with reason Forbidden",
)
def authorizes_requests(subject: Subject) -> None:
    """Raise Failed unless lists requested by a user without permissions get a 403 with a Status.

    Raise Skipped if no resource supports list.
    """
    for resource in subject.listable():
        _status(_must(subject.client.ask(f"{subject.root}/{resource['name']}", NOBODY), 403), "Forbidden")


_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@_check("aggregated discovery", "one request instead of one for each version; the aggregator requests it first")
def aggregated_discovery(subject: Subject) -> None:
    """Raise Failed unless aggregated discovery contains the group-version.

    Raise Skipped if the server does not support it.
    """
    answer = subject.client.ask("/apis", accept=_AGGREGATED)
    if answer.status == 503:
        raise Failed("503: the aggregator considers the server unavailable")
    if answer.status != 200 or _object(answer).get("kind") == "APIGroupList":
        raise Skipped("not supported: the aggregator falls back to unaggregated discovery")
    document = _object(answer)
    if document.get("kind") != "APIGroupDiscoveryList":
        raise Failed(f"want kind APIGroupDiscoveryList or APIGroupList, got {document.get('kind')!r}")
    content_type = answer.headers.get("content-type", "")
    if not is_aggregated(content_type):
        raise Failed(
            f"Content-Type is {content_type!r}: "
            f"the aggregator ignores responses without the parameters of {_AGGREGATED}"
        )
    groups = {(group.get("metadata") or {}).get("name"): group for group in document.get("items") or ()}
    versions = [v.get("version") for v in (groups.get(subject.group_version.group) or {}).get("versions") or ()]
    if subject.group_version.version not in versions:
        raise Failed(f"{subject.group_version} is missing")


@_check("OpenAPI", "kubectl reads it for explain, client-side validation and server-side apply")
def openapi(subject: Subject) -> None:
    """Raise Failed unless OpenAPI v3 has a schema of each kind that can be listed.

    Raise Skipped if the server has OpenAPI v2 only, or if no resource supports list.
    """
    index = subject.client.ask("/openapi/v3")
    if index.status == 404:
        _object(_must(subject.client.ask("/openapi/v2"), 200))
        raise Skipped("OpenAPI v3 is not supported; v2 is")
    paths = _object(_must(index, 200)).get("paths") or {}
    entry = paths.get(subject.root[1:])
    if entry is None:
        raise Failed(f"{subject.root[1:]} is missing in the index of /openapi/v3")
    document = _object(_must(subject.client.ask(entry["serverRelativeURL"]), 200))
    kinds = {
        gvk.get("kind")
        for schema in (document.get("components") or {}).get("schemas", {}).values()
        for gvk in schema.get("x-kubernetes-group-version-kind") or ()
    }
    missing = {r["kind"] for r in subject.listable()} - kinds
    if missing:
        raise Failed(f"no schema has the x-kubernetes-group-version-kind of {', '.join(sorted(missing))}")


@_check("lists", "clients decode lists by kind, metadata and items")
def lists(subject: Subject) -> None:
    """Raise Failed unless lists have the kind `KINDList`, metadata and items.

    Raise Skipped if no resource supports list.
    """
    for resource in subject.listable():
        resource_list = _object(
            _must(subject.client.ask(f"{subject.root}/{resource['name']}"), 200), f"{resource['kind']}List"
        )
        if not isinstance(resource_list.get("metadata"), dict) or not isinstance(resource_list.get("items"), list):
            raise Failed(f"the list of {resource['name']} lacks metadata or items")


@_check("tables", "kubectl get requests a Table, or JSON as fallback, and cannot decode anything else")
def tables(subject: Subject) -> None:
    """Raise Failed unless requests for a Table get a list, or a Table with as many cells as columns in each row.

    Raise Skipped if no resource supports list.
    """
    for resource in subject.listable():
        table = _object(_must(subject.client.ask(f"{subject.root}/{resource['name']}", accept=TABLE), 200))
        if table.get("kind") == "Table":
            width = len(table.get("columnDefinitions") or ())
            if any(len(row.get("cells") or ()) != width for row in table.get("rows") or ()):
                raise Failed(f"the number of cells differs from the number of columns in rows of {resource['name']}")
        elif table.get("kind") != f"{resource['kind']}List":
            raise Failed(f"want a Table or a list of {resource['name']}, got {table.get('kind')!r}")


@_check(
    "watches",
    "informers, kubectl get -w, garbage collection and quota need a stream of events that ends after timeoutSeconds",
)
def watches(subject: Subject) -> None:
    """Raise Failed unless watches send one JSON event per line and end after `timeoutSeconds`.

    Raise Skipped if no resource supports both list and watch.
    """
    watched = [r for r in subject.listable() if "watch" in r["verbs"]]
    if not watched:
        raise Skipped("no resource supports watch")
    for resource in watched:
        path = f"{subject.root}/{resource['name']}"
        revision = (_object(_must(subject.client.ask(path), 200)).get("metadata") or {}).get("resourceVersion")
        if not revision:
            raise Failed(f"the list of {resource['name']} has no resourceVersion to watch from")
        answer = _must(subject.client.ask(f"{path}?watch=1&timeoutSeconds=1&resourceVersion={revision}"), 200)
        for line in filter(None, answer.body.splitlines()):
            _event(resource["name"], line)


def _event(name: str, line: bytes) -> None:
    try:
        event: Any = json.loads(line)
    except ValueError:
        raise Failed(f"a watch of {name} does not send one JSON object per line: {line[:100]!r}") from None
    if not isinstance(event, dict) or "type" not in event or "object" not in event:
        raise Failed(f"an event of {name} has no type or no object: {line[:100]!r}")


@_check("missing objects", "clients decide by reason and code of a Status, not by its message")
def missing_objects(subject: Subject) -> None:
    """Raise Failed unless a missing object gets a 404 with a Status, and a missing resource a 404.

    Raise Skipped if no resource supports list.
    """
    for resource in subject.listable():
        if "get" not in resource["verbs"]:
            continue
        location = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        _status(_must(subject.client.ask(f"{subject.root}/{location}/{_ABSENT}"), 404), "NotFound")
    _must(subject.client.ask(f"{subject.root}/{_ABSENT}"), 404)


@_check(
    "bad bodies",
    "malformed JSON is a 400 BadRequest, and an unknown media type a 415 UnsupportedMediaType, never a 500",
)
def bad_bodies(subject: Subject) -> None:
    """Raise Failed unless a create with malformed JSON gets a 400, and with an unknown media type a 415.

    Raise Skipped if no resource supports create.
    """
    created = [r for r in subject.resources if "create" in r.get("verbs", ()) and "/" not in r["name"]]
    if not created:
        raise Skipped("no resource supports create")
    for resource in created:
        location = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        path = f"{subject.root}/{location}?dryRun=All"
        _status(
            _must(subject.client.ask(path, method="POST", body=b"{", content_type="application/json"), 400),
            "BadRequest",
        )
        _must(subject.client.ask(path, method="POST", body=b"<a/>", content_type="application/xml"), 415)


@_check("dry runs", "kubectl --dry-run=server and kubectl diff rely on it that nothing is stored")
def dry_runs(subject: Subject) -> None:
    """Raise Failed if an object created with `dryRun=All` is stored.

    The create itself may be rejected, but not with a 500.

    Raise Skipped if no resource supports create and get.
    """
    created = [r for r in subject.resources if {"create", "get"} <= set(r.get("verbs", ())) and "/" not in r["name"]]
    if not created:
        raise Skipped("no resource supports create and get")
    for resource in created:
        location = f"namespaces/default/{resource['name']}" if resource["namespaced"] else resource["name"]
        body = {"apiVersion": str(subject.group_version), "kind": resource["kind"], "metadata": {"name": _ABSENT}}
        answer = subject.client.ask(
            f"{subject.root}/{location}?dryRun=All",
            method="POST",
            body=json.dumps(body).encode(),
            content_type="application/json",
        )
        if answer.status >= 500:
            raise Failed(f"creating {resource['name']} without a spec: {answer}")
        _must(subject.client.ask(f"{subject.root}/{location}/{_ABSENT}"), 404)
