"""Tests of errors in audit policy files. Each expected text was produced by a real kube-apiserver."""

from __future__ import annotations

import logging

import pytest

from tetrapod.generic.audit.options import AuditOptions, Delivery, LogOptions
from tetrapod.generic.audit.policy_file import PolicyError, parse_policy, read_policy

HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*"
    "[a-z0-9])?)*')"
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("foo: bar", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"),
        ("", "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy"),
        (HEAD, "loaded illegal policy with 0 rules"),
        (
            HEAD + "rules: 5",
            "failed decoding: json: cannot unmarshal number into Go struct field Policy.rules of type []v1.PolicyRule",
        ),
        (
            HEAD + "metadata: 5",
            "failed decoding: json: cannot unmarshal number into Go struct field Policy.metadata of type v1.ObjectMeta",
        ),
        (
            "apiVersion: audit.k8s.io/v1beta1\nkind: Policy",
            (
                'failed decoding: no kind "Policy" is registered for version "audit.k8s.io/v1beta1" in scheme '
                '"pkg/runtime/scheme.go:111"'
            ),
        ),
        (
            "apiVersion: audit.k8s.io/v1\nkind: Event",
            "failed decoding: converting (v1.Event) to (audit.Policy): unknown conversion",
        ),
        ("a: [", "failed decoding: yaml: line 1: did not find expected node content"),
        (
            HEAD + "rules: [{level: Foo}]",
            (
                'rules[0].level: Unsupported value: "Foo": supported values: "None", "Metadata", "Request", '
                '"RequestResponse"'
            ),
        ),
        (
            HEAD
            + (
                "rules: [{},{level: None, nonResourceURLs: [a,/b*c], resources: [{group: A_b, resourceNames: [x]}], "
                "omitStages: [X]}]"
            ),
            "[rules[0].level: Required value, "
            'rules[1].nonResourceURLs[0]: Invalid value: "a": non-resource URL rules must begin '
            "with a '/' character, "
            "rules[1].nonResourceURLs[1]: Invalid value: \"/b*c\": non-resource URL wildcards '*' must be the final "
            "character of the rule, "
            f'rules[1].resources.group: Invalid value: "A_b": {SUBDOMAIN}, '
            'rules[1].resources.resourceNames: Invalid value: ["x"]: using resourceNames requires at '
            "least one resource, "
            'rules[1].omitStages[0]: Invalid value: "X": allowed stages are '
            "RequestReceived,ResponseStarted,ResponseComplete,Panic, "
            'rules[1].nonResourceURLs: Invalid value: ["a","/b*c"]: rules cannot apply to both regular resources and '
            "non-resource URLs]",
        ),
    ],
)
def test_a_bad_policy_is_rejected_with_upstreams_text(text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as rejected:
        parse_policy(text.encode())
    assert str(rejected.value) == problem


def test_unknown_fields_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parse_policy(f"{HEAD}foo: 1\nrules: [{{level: None}}]".encode())
    assert caplog.messages == [
        'Audit policy contains errors, falling back to lenient decoding: strict decoding error: unknown field "foo"'
    ]


def test_a_policy_file_that_does_not_exist_is_named() -> None:
    with pytest.raises(PolicyError) as rejected:
        read_policy("/nonexistent/policy.yaml")
    assert str(rejected.value) == (
        'loading audit policy file: failed to read file path "/nonexistent/policy.yaml": '
        "open /nonexistent/policy.yaml: no such file or directory"
    )


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (LogOptions("-", "xml"), 'invalid audit log format xml, allowed formats are "legacy,json"'),
        (LogOptions("-", max_age=-1), "--audit-log-maxage -1 can't be a negative number"),
        (
            LogOptions("-", delivery=Delivery("now")),
            'invalid audit log mode now, allowed modes are "batch,blocking,blocking-strict"',
        ),
        (
            LogOptions("-", delivery=Delivery(max_event_size=0)),
            "invalid audit truncate log max event size 0, must be a positive number",
        ),
        (
            LogOptions("-", delivery=Delivery(max_batch_size=1)),
            "invalid audit truncate log max batch size 1, must be greater than max event size (102400)",
        ),
        (
            LogOptions("-", delivery=Delivery(version="v2")),
            'invalid group version, allowed versions are ["audit.k8s.io/v1"]',
        ),
    ],
)
def test_bad_flags_are_rejected_with_upstreams_text(log: LogOptions, problem: str) -> None:
    with pytest.raises(ValueError) as rejected:
        AuditOptions(log=log).build()
    assert str(rejected.value) == problem


def test_without_a_policy_or_a_backend_nothing_is_audited() -> None:
    assert AuditOptions(log=LogOptions("-")).build() is None
