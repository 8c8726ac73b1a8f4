"""A load of requests that makes an API server publish all its metrics, and a parser of the published metric families.

`tools/record_metrics.py` applies the load to a kube-apiserver, tests/integration/metrics to Tetrapod.
"""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypedDict

from support.waiting import until

ADMIN, ALICE = "admin-token", "alice-token"
SPACE = "metrics-load"
_NAMESPACE = f"/api/v1/namespaces/{SPACE}"
_MAPS = f"{_NAMESPACE}/configmaps"
_POLICIES = "/apis/admissionregistration.k8s.io/v1"
_GROUP = "load.example.com"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WIDGETS = f"/apis/{_GROUP}/v1/namespaces/{SPACE}/widgets"
_APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_OURS = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}}
_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
    "scope": "*",
}


class Family(TypedDict):
    type: str
    help: str
    labels: list[str]
    buckets: list[str]


class TokenClient:
    """An HTTPS client that authenticates with a bearer token."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._context = ssl._create_unverified_context()

    def __call__(
        self, method: str, path: str, body: Any = None, *, token: str = ADMIN, **headers: str
    ) -> tuple[int, bytes]:
        """Send a request and return status and body. Header names are given with underscores."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    @contextlib.contextmanager
    def watching(self, path: str) -> Iterator[Any]:
        """The lines of a watch."""
        request = urllib.request.Request(self.url + path, headers={"authorization": f"Bearer {ADMIN}"})
        with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
            yield answer

    def until(self, condition: Callable[[int], bool], method: str, path: str, body: Any = None, **headers: str) -> None:
        """Repeat a request until `condition` is true of the status."""
        until(lambda: self(method, path, body, **headers)[0], condition, timeout=20, description=f"{method} {path}")


def _map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@contextlib.contextmanager
def metric_load(url: str, admission_url: str = "") -> Iterator[TokenClient]:
    """Apply the load, leave a watch open, and delete all objects at the end.

    `admission_url` is the server whose metrics count the webhooks for ConfigMaps, if it is another one.
    """
    ask = TokenClient(url)
    admission = TokenClient(admission_url or url)
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE, "labels": labels}})
    with contextlib.ExitStack() as stack:
        stack.callback(ask, "DELETE", _NAMESPACE)
        _objects(ask)
        _rejections(ask)
        _identities(ask)
        _services_and_pods(ask)
        for scenario in (_definitions, _policies, partial(_webhooks, admission), _unavailable_apiservice):
            stack.callback(scenario(ask))
        watch = stack.enter_context(
            ask.watching(
                f"{_MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
            )
        )
        ask("POST", _MAPS, _map("seen"))
        while b'"seen"' not in watch.readline():
            pass
        yield ask


def _objects(ask: TokenClient) -> None:
    ask("POST", _MAPS, _map("counted", a="b"))
    ask("GET", f"{_MAPS}/counted")
    ask("GET", _MAPS)
    ask("GET", f"{_MAPS}?limit=1&resourceVersion=0")
    ask("GET", "/api/v1/configmaps?labelSelector=no%3Dsuch")
    ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnone")
    ask(
        "PATCH",
        f"{_MAPS}/counted?fieldManager=m&force=true",
        _map("counted", a="c"),
        content_type="application/apply-patch+yaml",
    )
    ask(
        "PATCH",
        f"{_MAPS}/counted?fieldValidation=Strict",
        {"data": {"a": "d"}},
        content_type="application/merge-patch+json",
    )
    ask("PUT", f"{_MAPS}/counted?dryRun=All", _map("counted", a="e"))
    ask(
        "POST",
        f"{_NAMESPACE}/events",
        {"metadata": {"name": "happened"}, "involvedObject": {"namespace": SPACE}, "reason": "Load"},
    )
    ask("DELETE", f"{_MAPS}/counted")
    ask("GET", f"{_NAMESPACE}/endpoints")  # deprecated
    for path in ("/version", "/readyz", "/apis", "/openapi/v3", "/api"):
        ask("GET", path)
    ask("GET", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")


def _rejections(ask: TokenClient) -> None:
    """Send requests that are rejected."""
    ask("GET", f"{_MAPS}/missing")
    ask("GET", _MAPS, token=ALICE)
    ask("GET", _MAPS, token="nobody's")
    ask("POST", _MAPS, _map("twice"))
    ask("POST", _MAPS, _map("twice"))
    ask("POST", _MAPS, _map("Not A Name"))
    ask("GET", "/version", token=ALICE)
    with contextlib.suppress(OSError, ValueError):  # no TLS
        urllib.request.urlopen(ask.url.replace("https", "http"), timeout=10).close()


def _identities(ask: TokenClient) -> None:
    ask("POST", f"{_NAMESPACE}/serviceaccounts", {"metadata": {"name": "worker"}})
    _, body = ask("POST", f"{_NAMESPACE}/serviceaccounts/worker/token", {"spec": {"expirationSeconds": 3607}})
    token = json.loads(body)["status"]["token"]
    ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token)
    ask("GET", "/version", impersonate_user="alice")
    ask("GET", "/version", token=ALICE, impersonate_user="bob")


def _services_and_pods(ask: TokenClient) -> None:
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    ask("POST", f"{_NAMESPACE}/services", {"metadata": {"name": "served"}, "spec": spec})
    ask(
        "POST",
        f"{_NAMESPACE}/services",
        {"metadata": {"name": "again"}, "spec": {**spec, "ports": [{"port": 80, "nodePort": 1}]}},
    )
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "worker"},
    }
    ask("POST", f"{_NAMESPACE}/pods", pod)  # not secure enough
    ask("GET", f"{_NAMESPACE}/pods/p/log")


def _definitions(ask: TokenClient) -> Callable[[], Any]:
    name = f"widgets.{_GROUP}"
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size < 10"}],
    }
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    definition = {"group": _GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    ask("POST", _CRDS, {"apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": name}, "spec": definition})
    widget = {"apiVersion": f"{_GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    ask.until(lambda status: status in (201, 409), "POST", _WIDGETS, widget)
    ask("PATCH", f"{_WIDGETS}/w", {"spec": {"size": 2}}, content_type="application/merge-patch+json")
    ask("PATCH", f"{_WIDGETS}/w", {"spec": {"size": 11}}, content_type="application/merge-patch+json")
    ask("GET", _WIDGETS)
    return lambda: ask("DELETE", f"{_CRDS}/{name}")


def _policies(ask: TokenClient) -> Callable[[], Any]:
    """Create a validating and a mutating policy, and wait until the first one is in effect."""
    named = {"metadata": {"name": "metrics-load"}}
    constraints = {"resourceRules": [_RULE], **_OURS}
    validation = {"matchConstraints": constraints, "validations": [{"expression": "object.metadata.name != 'denied'"}]}
    expression = "Object{metadata: Object.metadata{labels: {'mutated': 'yes'}}}"
    mutation: dict[str, Any] = {"matchConstraints": constraints, "reinvocationPolicy": "Never", "failurePolicy": "Fail"}
    mutation["mutations"] = [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]
    made = (
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
    actions = {"validationActions": ["Deny", "Audit"]}
    for resource, spec in zip(
        made,
        (validation, {"policyName": "metrics-load", **actions}, mutation, {"policyName": "metrics-load"}),
        strict=True,
    ):
        ask("POST", f"{_POLICIES}/{resource}", {**named, "spec": spec})
    ask.until(lambda status: status == 422, "POST", f"{_MAPS}?dryRun=All", _map("denied"))
    ask("POST", _MAPS, _map("mutated"))

    def undone() -> None:
        for resource in made:
            ask("DELETE", f"{_POLICIES}/{resource}/metrics-load")

    return undone


def _webhooks(admission: TokenClient, ask: TokenClient) -> Callable[[], Any]:
    """Register webhooks without a server, whose failure policy is Ignore, and wait until the calls that failed open are
    counted.
    """
    hook = {
        "name": "hook.load.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [_RULE],
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchConditions": [{"name": "not-excluded", "expression": "object.metadata.name != 'excluded'"}],
        **_OURS,
    }
    made = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
    for resource in made:
        ask("POST", f"{_POLICIES}/{resource}", {"metadata": {"name": "metrics-load"}, "webhooks": [hook]})
    deadline = time.monotonic() + 20
    while (
        b"fail_open_count" not in (text := admission("GET", "/metrics")[1])
        or b'hook.load.example.com",type="validating"' not in text
    ):
        assert time.monotonic() < deadline
        ask("POST", f"{_MAPS}?dryRun=All", _map("hooked"))
        ask("POST", f"{_MAPS}?dryRun=All", _map("excluded"))

    def undone() -> None:
        for resource in made:
            ask("DELETE", f"{_POLICIES}/{resource}/metrics-load")

    return undone


def _unavailable_apiservice(ask: TokenClient) -> Callable[[], Any]:
    """Create an APIService whose Service does not exist."""
    name = "v1.elsewhere.load.example.com"
    spec = {"group": "elsewhere.load.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100}
    spec["service"] = {"name": "nowhere", "namespace": SPACE}
    spec["insecureSkipTLSVerify"] = True
    ask("POST", _APISERVICES, {"metadata": {"name": name}, "spec": spec})
    ask.until(lambda status: status == 503, "GET", "/apis/elsewhere.load.example.com/v1/things")
    deadline = time.monotonic() + 20
    while f'name="{name}"'.encode() not in ask("GET", "/metrics")[1] and time.monotonic() < deadline:
        time.sleep(0.05)
    return lambda: ask("DELETE", f"{_APISERVICES}/{name}")


_SAMPLE = re.compile(r"([a-z_0-9]+)(?:\{(.*)\})? ")
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def families(text: str) -> Mapping[str, Family]:
    """Parse the text exposition format.

    Return the families by the name in their TYPE line, with the labels and buckets of all samples.
    """
    parsed: dict[str, Family] = {}
    name, texts = "", dict[str, str]()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, documented, help_text = line.split(" ", 3)
            texts[documented] = help_text
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            parsed[name] = Family(type=kind, help=texts.get(name, "").strip(), labels=[], buckets=[])
        elif match := _SAMPLE.match(line):
            family = parsed[name]
            for label, value in _LABEL.findall(match[2] or ""):
                into, wanted = (family["buckets"], value) if label == "le" else (family["labels"], label)
                if wanted not in into:
                    into.append(wanted)
    for family in parsed.values():
        family["labels"].sort()
    return parsed
