"""Tests of kube-apiserver flags without effect here: they are either ignored, without affecting other flags, or
rejected.
"""

from __future__ import annotations

import click
import pytest

from tetrapod.cli.flags import flags_of, parse_options, split_ignored
from tetrapod.cli.upstream_flags import ACCEPTED, REJECTED, SWITCHES


def test_a_boolean_flag_takes_no_separate_value_and_other_flags_do() -> None:
    line = [
        "--contention-profiling",
        "--secure-port=1",
        "--storage-initialization-timeout",
        "1s",
        "--contention-profiling=false",
        "--log-flush-frequency=5s",
        "--bind-address",
        "::",
    ]
    known, ignored = split_ignored(line)
    assert known == ["--secure-port=1", "--bind-address", "::"]
    assert ignored == [
        "contention-profiling",
        "storage-initialization-timeout",
        "contention-profiling",
        "log-flush-frequency",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "--admission-control=NamespaceLifecycle",
        "--enable-garbage-collector=false",
        "--storage-backend=etcd2",
    ],
)
def test_flags_that_change_behaviour_are_rejected(line: str) -> None:
    with pytest.raises(click.UsageError, match=line.replace("=", " ").split()[0]):
        parse_options("up", line.split())


@pytest.mark.parametrize(
    "line",
    [
        "--enable-garbage-collector=true",
        "--storage-backend=etcd3",
    ],
)
def test_flags_that_match_the_behaviour_are_accepted(line: str) -> None:
    assert parse_options("up", [line]).ignored == (line.removeprefix("--").partition("=")[0],)


def test_unknown_flags_are_rejected() -> None:
    with pytest.raises(click.UsageError, match="No such option"):
        parse_options("up", ["--cloud-provider=aws"])


def test_a_former_name_of_a_flag_sets_the_flag() -> None:
    assert parse_options("up", ["--audit-webhook-batch-initial-backoff=3s"]).audit.webhook.initial_backoff == 3


def test_no_flag_of_up_is_also_accepted_without_effect() -> None:
    ours = {flag.name for flag, _ in flags_of("up")}
    assert ours & ACCEPTED == {"cert-dir"}  # separate services do not have these flags
    assert SWITCHES | REJECTED.keys() <= ACCEPTED
