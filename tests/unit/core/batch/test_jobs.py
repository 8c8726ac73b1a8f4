"""Tests of jobs: indexes, selectors, and a template that is immutable except for the fields of a suspended job."""

import pytest

from tetrapod.core.batch.jobs import status_validation as job_status
from tetrapod.core.batch.jobs import validation as jobs
from tetrapod.core.batch.jobs.indexes import count_indexes, overlap
from tetrapod.core.batch.jobs.strategy import JobStrategy
from tetrapod.generic.registry.context import Context
from tetrapod.machinery.gvk import Object


def job(**spec: object) -> Object:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always"}]}
    }
    obj: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "n", "uid": "u"},
        "spec": {"template": template, **spec},
    }
    JobStrategy().default(obj, "v1")
    return obj


def test_indexes_are_counted_and_must_rise() -> None:
    assert count_indexes("1,3-5,7", 10) == 5
    for text in ("1,1", "5-3", "12", "a", "1-2-3"):
        with pytest.raises(ValueError):
            count_indexes(text, 10)


def test_an_index_with_thousands_of_digits_is_rejected_with_upstreams_message() -> None:
    with pytest.raises(ValueError, match="cannot convert string to integer for index"):
        count_indexes("9" * 5000, 10)


def test_an_index_cannot_be_completed_and_failed() -> None:
    assert overlap("0-3,7", "5,7-8", 10) == 7
    assert overlap("0-3", "4", 10) is None


def test_a_new_job_selects_its_own_pods_and_carries_their_labels() -> None:
    obj = job()
    JobStrategy().prepare_for_create(Context(), obj)
    labels = obj["spec"]["template"]["metadata"]["labels"]
    assert obj["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert labels["job-name"] == "j" and "labels" not in obj["metadata"]


def test_labels_of_the_user_are_kept() -> None:
    obj = job()
    obj["metadata"]["labels"] = {"mine": "1"}
    JobStrategy().prepare_for_create(Context(), obj)
    assert obj["metadata"]["labels"] == {"mine": "1"}


@pytest.mark.parametrize(("suspend", "fields"), [(False, ["spec.template"]), (True, [])])
def test_a_suspended_job_may_be_placed_elsewhere(suspend: bool, fields: list[str]) -> None:
    old, new = job(suspend=suspend), job(suspend=suspend)
    for obj in (old, new):
        JobStrategy().prepare_for_create(Context(), obj)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
    assert [e.field for e in jobs.validate_update(new, old)] == fields


def test_a_finished_job_stays_finished() -> None:
    done = {"conditions": [{"type": kind, "status": "True"} for kind in ("SuccessCriteriaMet", "Complete")]}
    old = {**job(), "status": {**done, "startTime": "2025-01-01T00:00:00Z", "completionTime": "2025-01-01T01:00:00Z"}}
    new = {**old, "status": {**old["status"], "conditions": []}}
    texts = [e.detail for e in job_status.validate(new, old)]
    assert "cannot disable the terminal Complete=True condition" in texts
