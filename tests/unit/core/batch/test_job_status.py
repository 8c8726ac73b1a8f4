"""Tests of the validation of a job's status, which depends on the change by the update."""

from __future__ import annotations

from typing import Any

from tetrapod.core.batch.jobs.status_validation import validate

BEGAN = "2026-01-01T00:00:00Z"


def job(status: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "j"}, "spec": spec, "status": status}


def errors(before: dict[str, Any], after: dict[str, Any], **spec: Any) -> list[str]:
    return [str(error) for error in validate(job(after, **spec), job(before, **spec))]


def true(*kinds: str) -> list[dict[str, str]]:
    return [{"type": kind, "status": "True"} for kind in kinds]


def test_unchanged_invalid_statuses_are_accepted() -> None:
    wrong = {"ready": 2, "active": 1}
    assert errors(wrong, {**wrong, "failed": 1}) == []
    assert len(errors({}, wrong)) == 1


def test_a_finished_job_has_no_active_pods() -> None:
    after = {
        "startTime": BEGAN,
        "conditions": true("FailureTarget", "Failed"),
        "uncountedTerminatedPods": {"failed": ["a"]},
    }
    assert errors({"startTime": BEGAN}, after) == [
        (
            'status.uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["a"]}: must '
            "be empty for finished job"
        )
    ]


def test_indexes_may_be_forgotten_where_completions_are_the_parallelism() -> None:
    indexed = {"completionMode": "Indexed", "completions": 3}
    assert errors({"succeeded": 2}, {"succeeded": 1}, **indexed, parallelism=3) == []
    assert len(errors({"succeeded": 2}, {"succeeded": 1}, **indexed, parallelism=2)) == 1


def test_the_start_time_is_immutable_until_the_job_is_suspended_or_resumed() -> None:
    (text,) = errors({"startTime": BEGAN}, {})
    assert text == "status.startTime: Invalid value: null: field is immutable for unsuspended job once set"
    assert errors({"startTime": BEGAN}, {}, suspend=True) == []
    resumed = {"startTime": "2026-01-02T00:00:00Z", "conditions": [{"type": "Suspended", "status": "False"}]}
    assert errors({"startTime": BEGAN, "conditions": true("Suspended")}, resumed) == []
