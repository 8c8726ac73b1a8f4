"""Tests of EventRateLimit: token buckets by server, namespace, user and source, and errors in invalid
configurations.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tetrapod.core.admission.event_rate_limit import EventRateLimit, Limit, TokenBucket, read_limits
from tetrapod.generic.admission.interface import Attributes
from tetrapod.machinery.gvk import GroupVersionKind, GroupVersionResource
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.user import UserInfo


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def event(
    namespace: str = "a", user: str = "u", about: str = "pod", *, group: str = "", dry_run: bool = False
) -> Attributes:
    return Attributes(
        operation="CREATE",
        kind=GroupVersionKind(group, "v1", "Event"),
        resource=GroupVersionResource(group, "v1", "events"),
        subresource="",
        namespace=namespace,
        name="e",
        object={
            "source": {"component": "c", "host": "h"},
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": about},
        },
        old_object=None,
        options={},
        dry_run=dry_run,
        user=UserInfo(user),
    )


def rejection(plugin: EventRateLimit, asked: Attributes) -> str:
    """Return the error message for the client, empty if the event is admitted."""
    if not plugin.handles(asked):
        return ""
    try:
        asyncio.run(plugin.validate(asked))
    except StatusError as error:
        assert (error.code, error.reason) == (429, "TooManyRequests")
        return error.message
    return ""


@pytest.mark.parametrize(
    ("type_", "same", "other", "key"),
    [
        ("Server", event("b", "v", "x"), None, ""),
        ("Namespace", event("a", "v", "x"), event("b"), "a"),
        ("User", event("b", "u", "x"), event(user="v"), "u"),
        ("SourceAndObject", event(user="v"), event(about="x"), "chPodapod"),
    ],
)
def test_events_count_together_by_the_type_of_the_limit(
    type_: str, same: Attributes, other: Attributes | None, key: str
) -> None:
    clock = Clock()
    plugin = EventRateLimit([Limit(type_, qps=2, burst=1)], clock)
    assert rejection(plugin, event()) == ""
    assert rejection(plugin, same) == f"Too many requests: limit reached on type {type_} for key {key}"
    assert other is None or rejection(plugin, other) == ""
    clock.now = 0.5
    assert rejection(plugin, same) == ""


def test_every_limit_is_reported_that_is_reached() -> None:
    plugin = EventRateLimit([Limit("Server", 1, 1), Limit("Namespace", 1, 1)], Clock())
    assert rejection(plugin, event()) == ""
    message = "[limit reached on type Server for key , limit reached on type Namespace for key a]"
    assert rejection(plugin, event()) == f"Too many requests: {message}"


def test_dry_runs_and_events_of_the_other_group_are_not_counted() -> None:
    plugin = EventRateLimit([Limit("Server", 1, 1)], Clock())
    assert [rejection(plugin, asked) for asked in (event(dry_run=True), event(group="events.k8s.io"), event())] == [
        "",
        "",
        "",
    ]


def test_a_bucket_that_has_been_forgotten_is_full_again() -> None:
    plugin = EventRateLimit([Limit("Namespace", 1, 1, cache_size=2)], Clock())
    asked = ["a", "b", "a", "c", "a", "b"]  # c evicts b, because a was used more recently
    assert [bool(rejection(plugin, event(namespace))) for namespace in asked] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]


@given(st.integers(1, 50), st.integers(1, 50), st.lists(st.floats(0, 2), max_size=60))
def test_no_more_pass_than_burst_and_rate_allow(qps: int, burst: int, waits: list[float]) -> None:
    bucket, now, passed = TokenBucket(qps, burst, 0.0), 0.0, 0
    for wait in waits:
        now += wait
        passed += bucket.take(now)
        assert passed <= burst + now * qps + 1e-6
    assert passed >= min(len(waits), burst)


def configuration(limits: str) -> bytes:
    return f"apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: {limits}\n".encode()


def test_unknown_fields_of_a_configuration_are_ignored() -> None:
    assert read_limits(None) == []
    given_ = configuration(
        "[{type: Server, qps: 1, burst: 2, cacheSize: -1, other: 1}, {type: User, qps: 3, burst: 4, cacheSize: 5}]"
    )
    assert read_limits(given_) == [Limit("Server", 1, 2, -1), Limit("User", 3, 4, 5)]


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("[]", "limits: Invalid value: []: must not be empty"),
        ("[{type: Server, qps: 1}]", "limits[0].burst: Invalid value: 0: must be positive"),
        (
            "[{type: Sometimes, qps: -1, burst: 1, cacheSize: -1}]",
            '[limits[0].type: Unsupported value: "Sometimes": supported values: "Namespace", "Server", '
            '"SourceAndObject", "User", '
            "limits[0].qps: Invalid value: -1: must be positive, limits[0].cacheSize: Invalid value: "
            "-1: must not be negative]",
        ),
        (
            '[{type: Server, qps: "1", burst: 1}]',
            "json: cannot unmarshal string into Go struct field Limit.limits.qps of type int32",
        ),
    ],
)
def test_an_invalid_configuration_is_rejected(limits: str, message: str) -> None:
    with pytest.raises(ValueError) as rejected:
        read_limits(configuration(limits))
    assert str(rejected.value) == message


def test_a_configuration_of_another_kind_is_rejected() -> None:
    other = b'{"apiVersion": "eventratelimit.admission.k8s.io/v1", "kind": "Configuration"}'
    with pytest.raises(
        ValueError, match=r'^no kind "Configuration" is registered for version "eventratelimit.admission.k8s.io/v1"'
    ):
        read_limits(other)
