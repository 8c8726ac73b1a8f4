"""Tests of ABAC policy files: what each line allows, in both versions, and the errors in invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tetrapod.auth.abac.policies import AbacAuthorizer, read_policies
from tetrapod.generic.authorization.interface import Attributes, Decision
from tetrapod.machinery.user import UserInfo

V1 = '{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":'
EVERYBODY = ("system:authenticated",)
STRUCT = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def authorizer(tmp_path: Path, *lines: str) -> AbacAuthorizer:
    file = tmp_path / "policy.jsonl"
    file.write_text("\n".join(lines))
    return AbacAuthorizer(read_policies(str(file)))


async def allows(
    made: AbacAuthorizer,
    user: str,
    verb: str,
    resource: str = "",
    *,
    namespace: str = "",
    group: str = "",
    path: str = "",
    groups: tuple[str, ...] = EVERYBODY,
) -> bool:
    asked = Attributes(
        UserInfo(user, groups=groups),
        verb,
        namespace=namespace,
        group=group,
        resource=resource,
        resource_request=bool(resource),
        path=path,
    )
    answer = await made.authorize(asked)
    assert answer.reason == ("" if answer.decision is Decision.ALLOW else "No policy matched.")
    return answer.decision is Decision.ALLOW


async def test_a_policy_of_v1beta1_allows_what_it_says(tmp_path: Path) -> None:
    made = authorizer(
        tmp_path,
        "# comments and empty lines are nothing",
        "",
        V1 + '{"user":"alice","namespace":"*","resource":"*","apiGroup":"*"}}',
        V1 + '{"user":"bob","namespace":"projects","resource":"pods","readonly":true}}\r',
        V1 + '{"group":"viewers","nonResourcePath":"/version","readonly":true}}',
        V1 + '{"user":"*","nonResourcePath":"/healthz/*"}}',
        V1 + '{"user":"nobody"}}',
    )
    assert await allows(made, "alice", "delete", "secrets", namespace="x", group="any")
    assert not await allows(made, "alice", "get", path="/version")
    assert await allows(made, "bob", "watch", "pods", namespace="projects")
    assert not await allows(made, "bob", "update", "pods", namespace="projects")
    assert not await allows(made, "bob", "get", "pods", namespace="projects", group="metrics.k8s.io")
    assert not await allows(made, "bob", "get", "pods", namespace="other")
    assert await allows(made, "x", "get", path="/version", groups=("viewers",))
    assert not await allows(made, "x", "post", path="/version", groups=("viewers",))
    assert await allows(made, "x", "post", path="/healthz/etcd")
    assert not await allows(made, "x", "get", path="/healthz")
    assert not await allows(made, "system:anonymous", "get", path="/healthz/etcd", groups=("system:unauthenticated",))
    assert await allows(made, "nobody", "list", "", path="")  # an empty path is a valid path
    assert not await allows(made, "nobody", "list", "pods")


async def test_unset_fields_of_a_v0_policy_match_everything(tmp_path: Path) -> None:
    made = authorizer(
        tmp_path,
        '{"user":"admin"}',
        '{"resource":"events","readonly":true}',
        '{"group":"ops","namespace":"ops"}',
        "user: yaml",
    )
    assert await allows(made, "admin", "delete", "nodes", group="any")
    assert await allows(made, "admin", "get", path="/metrics")
    assert await allows(made, "x", "list", "events", namespace="y")
    assert not await allows(made, "x", "create", "events", namespace="y")
    assert not await allows(made, "x", "list", "events", namespace="y", groups=("system:unauthenticated",))
    assert await allows(made, "x", "create", "pods", namespace="ops", groups=("ops",))
    assert not await allows(made, "x", "create", "pods", groups=("ops",))
    assert not await allows(made, "x", "get", path="/metrics", groups=("ops",))
    assert await allows(made, "yaml", "delete", "pods")


async def test_rules_of_a_user_are_listed(tmp_path: Path) -> None:
    made = authorizer(
        tmp_path,
        V1 + '{"user":"bob","namespace":"a","resource":"pods","apiGroup":"*","readonly":true}}',
        V1 + '{"user":"bob","namespace":"*","nonResourcePath":"/x"}}',
        V1 + '{"user":"eve","namespace":"*","resource":"*"}}',
    )
    found = await made.rules_for(UserInfo("bob"), "a")
    assert found.resource_rules == [{"verbs": ["get", "list", "watch"], "apiGroups": ["*"], "resources": ["pods"]}]
    assert found.non_resource_rules == [{"verbs": ["*"], "nonResourceURLs": ["/x"]}]
    assert not found.incomplete
    assert (await made.rules_for(UserInfo("bob"), "b")).resource_rules == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "# hi\n" + '{"user": 3}',
            'line 2: {"user": 3}: json: cannot unmarshal number into Go struct field Policy.user of type string',
        ),
        (
            "foo",
            (
                "line 1: foo: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go "
                f"value of type {STRUCT}"
            ),
        ),
        (
            '{"apiVersion":"v1","kind":"Pod"}',
            (
                'line 1: {"apiVersion":"v1","kind":"Pod"}: no kind "Pod" is registered for version "v1" in scheme '
                '"pkg/runtime/scheme.go:111"'
            ),
        ),
        (
            V1.replace("Policy", "Foo") + "{}}",
            'line 1: {"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Foo","spec":{}}: no kind "Foo" '
            'is registered for version "abac.authorization.kubernetes.io/v1beta1" in scheme '
            '"pkg/runtime/scheme.go:111"',
        ),
    ],
)
def test_a_faulty_line_is_named_with_its_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "policy.jsonl"
    file.write_text(text)
    with pytest.raises(ValueError) as rejected:
        read_policies(str(file))
    assert str(rejected.value) == f"error reading policy file {file}, {message}"


def test_fields_that_are_unknown_are_ignored_and_long_lines_are_not(tmp_path: Path) -> None:
    file = tmp_path / "policy.jsonl"
    file.write_text(V1 + '{"user":"x","foo":1}}\n{"user":"x","bar":1}\n')
    assert len(read_policies(str(file))) == 2
    file.write_text('{"user":"' + "x" * 70_000 + '"}')
    with pytest.raises(ValueError, match="token too long"):
        read_policies(str(file))
    with pytest.raises(ValueError, match=r"^open /nope: no such file or directory$"):
        read_policies("/nope")


def test_a_policy_file_without_a_name_does_not_exist() -> None:
    with pytest.raises(ValueError, match="open : no such file or directory"):
        read_policies("")
