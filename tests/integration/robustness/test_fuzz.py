"""Random bodies, patches, selectors and queries, and recorded requests with random changes.

There must be no 500 that upstream would not return, and no hang. A bug that was found here usually has its own test
near its fix.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.wire import Answer, Client, is_accidental_error

pytestmark = pytest.mark.long

FUZZ: Final = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "150")),
    deadline=10_000,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
)
MAPS: Final = "/api/v1/namespaces/fuzz/configmaps"

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 70), 1 << 70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
words = st.sampled_from(
    [
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "managedFields",
        "fieldsV1",
        "spec",
        "status",
        "data",
        "rules",
        "template",
        "containers",
        "ports",
        "selector",
        "matchLabels",
        "matchExpressions",
        "kind",
        "apiVersion",
        "op",
        "path",
        "value",
        "from",
        "$patch",
        "$retainKeys",
        "uid",
        "resourceVersion",
        "generation",
        "deletionTimestamp",
        "creationTimestamp",
        "image",
        "resources",
        "limits",
        "replicas",
        "strategy",
        "env",
        "volumes",
        "tolerations",
    ]
)
keys = words | st.text(max_size=4)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=15
)
objects = st.dictionaries(keys, values, max_size=5)

KINDS: Final = {
    "/api/v1/namespaces/fuzz/pods": ("v1", "Pod"),
    "/api/v1/namespaces/fuzz/services": ("v1", "Service"),
    MAPS: ("v1", "ConfigMap"),
    "/apis/apps/v1/namespaces/fuzz/deployments": ("apps/v1", "Deployment"),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    "/apis/batch/v1/namespaces/fuzz/jobs": ("batch/v1", "Job"),
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    "/apis/apiregistration.k8s.io/v1/apiservices": ("apiregistration.k8s.io/v1", "APIService"),
}
BASES: Final[dict[str, dict[str, Any]]] = {
    "Pod": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "Deployment": {
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
    },
}


@pytest.fixture(scope="module", autouse=True)
def prepared(client: Client) -> None:
    client("POST", "/api/v1/namespaces", {"metadata": {"name": "fuzz"}})
    client("POST", MAPS, {"metadata": {"name": "m"}, "data": {"a": "b"}})
    deployment = {"metadata": {"name": "d"}, **BASES["Deployment"]}
    assert client("POST", "/apis/apps/v1/namespaces/fuzz/deployments", deployment).status in (201, 409)


def good(answer: Answer) -> None:
    assert not is_accidental_error(answer), (answer.status, answer.body[:500])


@FUZZ
@given(path=st.sampled_from(sorted(KINDS)), obj=objects, where=st.lists(words, max_size=3), value=values)
def test_any_object_is_accepted_or_rejected_without_an_internal_error(
    client: Client, path: str, obj: dict[str, Any], where: list[str], value: Any
) -> None:
    """Random objects, and valid ones with random content."""
    api_version, kind = KINDS[path]
    good(client("POST", f"{path}?dryRun=All", {"apiVersion": api_version, "kind": kind, **obj}))
    planted: dict[str, Any] = {"metadata": {"name": "x"}, **_copy(BASES.get(kind, {}))}
    at: Any = planted
    for word in where:
        at = at.setdefault(word, {}) if isinstance(at, dict) else at[0] if at else {}
    if isinstance(at, dict):
        at.update(value if isinstance(value, dict) else {"name": value})
    good(client("POST", f"{path}?dryRun=All", planted))


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _copy(v) for k, v in value.items()}
    return [_copy(v) for v in value] if isinstance(value, list) else value


RECORDINGS: Final = Path(__file__).parents[2] / "contract" / "recordings"
PATCH_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
oddities: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        1 << 31,
        1 << 63,
        "",
        "x",
        "a/b",
        "-",
        "\x00",
        "1e400",
        "10Gi",
        "-5",
        "0.5m",
        "::1",
        "10.0.0.0/8",
        "100%",
        "x" * 300,
        "2024-01-01T00:00:00Z",
        "self.x == 1",
        "$(A)",
        "a\nb",
        "{",
        [],
        {},
        [None],
        {"a": None},
        [[]],
        ["x", "x"],
        {"": ""},
        {"a": {"b": []}},
    ]
)


def recorded() -> list[tuple[str, str, bytes, str]]:
    """Yield method, path, body and media type of every recorded write that needs nothing from earlier responses."""
    found = []
    for file in sorted(RECORDINGS.glob("*.json")):
        for step in json.loads(file.read_text())["steps"]:
            method, path = step["request"].split(" ", 1)
            body = json.dumps(step.get("body")).replace("{ns}", "fuzz")
            path = path.replace("{ns}", "fuzz").partition("?")[0]
            if (
                method in ("POST", "PUT", "PATCH")
                and isinstance(step.get("body"), dict)
                and not re.search(r"\{\w+\}", path + body)
            ):
                found.append((method, path, body.encode(), PATCH_TYPES.get(step.get("patch", ""), "application/json")))
    return found


def places(value: Any) -> list[tuple[Any, Any]]:
    """Yield every member of every object and list in a value, as its container and its key."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, member in members for place in ((value, key), *places(member))]


@FUZZ
@given(st.data())
def test_recorded_writes_with_changed_values_are_accepted_or_rejected(client: Client, data: st.DataObject) -> None:
    method, path, body, media_type = data.draw(st.sampled_from(recorded_writes))
    obj = json.loads(body)
    for _ in range(data.draw(st.integers(1, 3))):
        if not (found := places(obj)):
            break
        holder, key = found[data.draw(st.integers(0, len(found) - 1))]
        what = data.draw(st.sampled_from(["replace", "replace", "remove", "repeat"]))
        if what == "remove":
            del holder[key]
        elif what == "repeat" and isinstance(holder, list):
            holder.append(holder[key])
        else:
            holder[key] = _copy(data.draw(oddities))
    good(client(method, f"{path}?dryRun=All", obj, {"Content-Type": media_type}))


recorded_writes: Final = recorded()

PATCHES: Final = ("merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml")
operations = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x"]),
            "path": st.sampled_from(
                [
                    "",
                    "/",
                    "/data",
                    "/data/a",
                    "/metadata/name",
                    "/spec/template/spec/containers/0",
                    "/metadata/labels/-",
                ]
            )
            | st.text(max_size=6),
        },
        optional={"value": values, "from": st.sampled_from(["/data", "/data/a", "/metadata", "/spec"])},
    ),
    max_size=4,
)


@FUZZ
@given(
    path=st.sampled_from([f"{MAPS}/m", "/apis/apps/v1/namespaces/fuzz/deployments/d"]),
    kind=st.sampled_from(PATCHES),
    body=objects | operations | values,
    strict=st.sampled_from(["Strict", "Warn", "Ignore"]),
)
def test_any_patch_is_applied_or_rejected_without_an_internal_error(
    client: Client, path: str, kind: str, body: Any, strict: str
) -> None:
    query = f"dryRun=All&fieldManager=f&fieldValidation={strict}"
    good(client("PATCH", f"{path}?{query}", body, {"Content-Type": f"application/{kind}"}))


@FUZZ
@given(
    body=st.binary(max_size=60),
    media_type=st.sampled_from(["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]),
)
def test_any_bytes_are_rejected(client: Client, body: bytes, media_type: str) -> None:
    if media_type.endswith("protobuf"):
        body = b"k8s\x00" + body
    good(client("POST", f"{MAPS}?dryRun=All", body, {"Content-Type": media_type}))
    good(client("DELETE", f"{MAPS}/absent", body, {"Content-Type": media_type}))


selectors = st.text(alphabet="ab=!,() innotx./-", max_size=20) | st.text(max_size=12)
numbers = st.sampled_from(["", "0", "1", "-1", "999999999999999999999", "1.5", "x", " "])
queries = st.fixed_dictionaries(
    {},
    optional={
        "labelSelector": selectors,
        "fieldSelector": selectors,
        "limit": numbers,
        "continue": st.text(max_size=10)
        | st.sampled_from(["e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi8ifQ"]),
        "resourceVersion": numbers,
        "resourceVersionMatch": st.sampled_from(["", "Exact", "NotOlderThan", "x"]),
        "timeoutSeconds": st.sampled_from(["1", "x", "-1"]),
        "pretty": st.text(max_size=3),
        "sendInitialEvents": st.sampled_from(["true", "x", "false"]),
        "allowWatchBookmarks": st.text(max_size=3),
    },
)


@FUZZ
@given(query=queries, path=st.sampled_from([MAPS, "/api/v1/pods", "/apis/apps/v1/deployments", f"{MAPS}/m"]))
def test_any_query_is_answered(client: Client, query: dict[str, str], path: str) -> None:
    answer = client("GET", f"{path}?{urlencode(query, errors='surrogatepass')}")
    if path.endswith("/m") and query.get("resourceVersion", "0").strip("0123456789"):
        return  # upstream returns 500 for a get at an invalid resource version
    good(answer)


@FUZZ
@given(
    path=st.text(max_size=15)
    | st.lists(st.sampled_from(["api", "apis", "v1", "namespaces", "pods", "watch", "a", "", "..", "status"])).map(
        "/".join
    ),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "FOO"]),
)
def test_any_path_is_answered(client: Client, path: str, method: str) -> None:
    text = quote(path, safe="/", errors="surrogatepass")
    answer = client(method, f"/{text}", {} if method not in ("GET", "HEAD") else None)
    if text.strip("/").startswith("api/v1/watch"):
        return  # upstream returns 500 for a watch without a type
    good(answer)


@FUZZ
@given(
    name=st.sampled_from(
        [
            "Accept",
            "Content-Type",
            "Accept-Encoding",
            "If-None-Match",
            "Range",
            "Origin",
            "Impersonate-User",
            "User-Agent",
        ]
    ),
    value=st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=30),
)
def test_any_header_is_answered(client: Client, name: str, value: str) -> None:
    good(client("GET", MAPS, headers={name: value}))
    good(
        client("GET", "/openapi/v2", headers={name: value})
        if name in ("Accept", "If-None-Match")
        else client("GET", "/apis", headers={name: value})
    )
