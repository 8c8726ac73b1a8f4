"""The harness of upstream's integration suites: its reading of Go's test output, and its counting."""

from __future__ import annotations

from dataclasses import replace

from upstream.output import Outcome, parse
from upstream.packages import Package
from upstream.results import Raw
from upstream.verdicts import Rules

OUTPUT = """I1123 10:00:00 1 etcd.go:197] "etcd output"
\x16=== RUN   TestApply
\x16=== RUN   TestApply/update
    apply_test.go:10: conflict
I1123 10:00:01 1 log.go:1] unrelated
    apply_test.go:12: failed to
        \0\x1bupdate
    klog.go:5: I1123 10:00:01.1] Updated
\x16=== RUN   TestApply/create
written without an end of line\x16    --- PASS: TestApply/create (0.01s)
\x16    --- FAIL: TestApply/update (0.02s)
\x16--- FAIL: TestApply (0.03s)
\x16=== RUN   TestSkipped
    apply_test.go:40: only with a cloud
\x16--- SKIP: TestSkipped (0.00s)
\x16=== RUN   TestHook
    hooks.go:20: not applicable: the test replaces the admission chain of the server in its process
\x16--- SKIP: TestHook (0.00s)
\x16=== RUN   TestGate
    server.go:30: Tetrapod ended by itself: exit status 1: {"level":"info"}
        Error: the gate CBOR is without effect here
\x16--- FAIL: TestGate (0.00s)
\x16=== RUN   TestSlow
panic: test timed out after 1s
"""


def test_output_gives_the_state_and_the_last_message_of_each_test() -> None:
    assert parse(OUTPUT) == {
        "TestApply": Outcome("failed"),
        "TestApply/update": Outcome("failed", "failed to update"),
        "TestApply/create": Outcome("passed"),
        "TestSkipped": Outcome("skipped", "only with a cloud"),
        "TestHook": Outcome(
            "skipped", "not applicable: the test replaces the admission chain of the server in its process"
        ),
        "TestGate": Outcome("failed", "Tetrapod ended by itself: Error: the gate CBOR is without effect here"),
        "TestSlow": Outcome("unfinished", "panic: test timed out after 1s"),
    }


def test_a_test_whose_context_was_cancelled_at_the_end_of_the_time_is_unfinished() -> None:
    output = """\x16=== RUN   TestLate
    contexthelper.go:75:\x20
        INFO: canceling context: test suite deadline (2026-11-28 03:15:07 +0000 UTC) is close
\x16=== RUN   TestLate/part
    test_server.go:258: context canceled
\x16    --- FAIL: TestLate/part (0.02s)
\x16--- FAIL: TestLate (0.03s)
"""
    result = Raw(parse(output), 3).judged(Package("apiserver"), Rules(()), "abc")
    assert (result.failed, result.unfinished) == ({}, {"TestLate/part": "context canceled"})


def test_a_test_that_failed_in_a_subtest_only_is_counted_once() -> None:
    result = Raw(parse(OUTPUT), 3).judged(Package("apiserver/apply"), Rules(()), "abc")
    assert result.passed == 1
    assert list(result.failed) == ["TestApply/update", "TestGate"]
    assert result.skipped == {"TestSkipped": "only with a cloud"}
    assert result.not_applicable == {"TestHook": "the test replaces the admission chain of the server in its process"}
    assert result.unfinished == {"TestSlow": "panic: test timed out after 1s"}


def test_a_later_run_of_the_unsuccessful_tests_takes_their_place_in_the_record() -> None:
    package, rules = Package("apiserver/apply"), Rules(())
    first = Raw(parse(OUTPUT), 3).judged(package, rules, "abc")
    assert first.unsuccessful() == {"TestApply", "TestGate", "TestSlow"}
    again = {
        "TestApply": Outcome("passed"),
        "TestApply/update": Outcome("passed"),
        "TestApply/create": Outcome("passed"),
        "TestGate": Outcome("failed", "another message"),
        "TestSlow": Outcome("passed"),
    }
    updated = first.updated(Raw(again, 2).judged(package, rules, "def"))
    assert (updated.passed, updated.seconds, updated.commit) == (3, 5, "def")
    assert updated.failed == {"TestGate": "another message"}
    assert not updated.unfinished
    assert updated.skipped == first.skipped
    assert updated.not_applicable == first.not_applicable
    assert updated.partly == {"TestGate": 0}


def test_a_record_that_does_not_tell_what_of_a_failed_test_passed_is_run_as_a_whole() -> None:
    result = Raw(parse(OUTPUT), 3).judged(Package("apiserver/apply"), Rules(()), "abc")
    assert result.repeatable()
    assert not replace(result, partly={}).repeatable()
