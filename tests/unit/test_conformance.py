"""Tests of the parts of tests/conformance that start nothing: names of specs, reports, records, and the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cluster.registry import manifest, repository
from conformance import report, results, whole_runs
from conformance.product import write_product
from conformance.results import NOT_REACHED, Outcome, Results, read
from conformance.specs import SHORT, Spec, focus, short_specs

PODS = Spec("[sig-node] Pods should be updated [Conformance]")
PODS_EXTENDED = Spec("[sig-node] Pods should be updated [Conformance] [NodeConformance]")
QUOTA = Spec("[sig-api-machinery] ResourceQuota should create a ResourceQuota (and more). [Conformance]")
INTERRUPTED = Spec("[sig-apps] Daemon set should run and stop simple daemon [Conformance] [Serial]")
LATE = Spec("[sig-apps] Job should delete a job [Conformance]")
SKIPPED = Spec("[sig-network] Services should need three nodes [Conformance]")

REPORT = f"""<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="Kubernetes e2e suite">
  <testcase name="[ReportBeforeSuite]" status="passed" time="0.1"></testcase>
  <testcase name="[It] {PODS.name}" status="passed" time="4.26"></testcase>
  <testcase name="[It] {QUOTA.name}" status="failed" time="1">
    <failure message="timed out&#xA;  after 60 s&#xA;&#xA;expected 1&#xA;got 2" type="failed">long</failure></testcase>
  <testcase name="[It] {INTERRUPTED.name}" status="timedout" time="70">
    <failure message="[TIMEDOUT] A suite timeout occurred&#xA;In [It]" type="timedout">log</failure></testcase>
  <testcase name="[It] {SKIPPED.name}" status="skipped" time="0.2">
    <skipped message="skipped - Requires at least 3 nodes (not 2)"></skipped></testcase>
  <testcase name="[It] {LATE.name}" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>
"""


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "RECORDS", tmp_path)
    return tmp_path


def outcomes(tmp_path: Path) -> Results:
    (tmp_path / "junit_01.xml").write_text(REPORT)
    return read(tmp_path / "junit_01.xml", [PODS, QUOTA, LATE, INTERRUPTED, SKIPPED], "abc", "2026-11-28")


def test_a_report_gives_each_chosen_spec_its_state_and_the_reason(tmp_path: Path) -> None:
    assert outcomes(tmp_path).outcomes == {
        PODS.name: Outcome("passed", 4.3, "", "abc", "2026-11-28"),
        QUOTA.name: Outcome("failed", 1.0, "timed out after 60 s expected 1", "abc", "2026-11-28"),
        LATE.name: Outcome("not run", 0.0, NOT_REACHED, "abc", "2026-11-28"),
        INTERRUPTED.name: Outcome("not run", 0.0, NOT_REACHED, "abc", "2026-11-28"),
        SKIPPED.name: Outcome("not run", 0.2, "Requires at least 3 nodes (not 2)", "abc", "2026-11-28"),
    }


def test_without_a_report_no_spec_counts_as_run(tmp_path: Path) -> None:
    found = read(tmp_path / "missing.xml", [PODS], "abc", "2026-11-28")
    assert found.outcomes == {PODS.name: Outcome("not run", 0.0, NOT_REACHED, "abc", "2026-11-28")}


def test_a_record_is_read_as_it_was_written(tmp_path: Path, records: Path) -> None:
    assert Results.load("one").outcomes == {}
    written = outcomes(tmp_path)
    written.save("one")
    assert Results.load("one") == written
    assert len((records / "one.json").read_text().splitlines()) == len(written.outcomes) + 2


def test_the_focus_selects_the_chosen_specs_only() -> None:
    pattern = re.compile(focus([PODS, QUOTA]))
    assert pattern.search(f"Kubernetes e2e suite {PODS.name}")
    assert pattern.search(f"Kubernetes e2e suite {QUOTA.name}".replace("should ", "should  "))
    assert not pattern.search(f"Kubernetes e2e suite {PODS_EXTENDED.name}")
    assert not pattern.search(f"Kubernetes e2e suite {LATE.name}")


def test_the_short_form_needs_every_name_once() -> None:
    specs = [Spec(f"{name} [Conformance]") for name in SHORT]
    assert short_specs([PODS, *specs]) == specs
    assert len(specs) == 20
    with pytest.raises(ValueError, match="0 specs are called"):
        short_specs(specs[1:])
    with pytest.raises(ValueError, match="2 specs are called"):
        short_specs([*specs, Spec(f"{SHORT[0]} twice")])


def test_the_page_counts_by_group_and_lists_failures_with_their_reason(
    tmp_path: Path, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(report, "_OUT", page)
    found = outcomes(tmp_path)
    found.save("one")
    for revision in ("former", "abc"):
        whole_runs.add("one", revision, "2026-11-28", found)
    whole_runs.add("stock", "other", "2026-11-28", found)
    report.write()
    text = page.read_text()
    one, four = text.split("## Four services over etcd")
    assert "| api-machinery |  | 1 |  |\n| apps |  |  | 2 |\n| network |  |  | 1 |\n| node | 1 |  |  |\n" in one
    assert "| **all** | 1 | 1 | 3 |" in one
    assert f"| {QUOTA.name} | `timed out after 60 s expected 1` |" in one
    assert f"| {SKIPPED.name} | `Requires at least 3 nodes (not 2)` |" in one
    assert "5 specs at commit abc on 2026-11-28" in one
    assert "| 2026-11-28 | abc | 1 | 1 | 3 |\n| 2026-11-28 | former | 1 | 1 | 3 |\n\n" in one
    assert "has not run in this form yet" in four


def test_the_description_of_the_product_has_the_fields_of_the_programme(tmp_path: Path) -> None:
    write_product(tmp_path)
    product = yaml.safe_load((tmp_path / "product.yaml").read_text())
    assert product["name"] == "Tetrapod"
    assert {"vendor", "version", "website_url", "documentation_url", "product_logo_url", "type"} <= set(product)


def test_the_name_of_an_image_gives_its_path_in_the_registry() -> None:
    assert repository("registry.k8s.io/e2e-test-images/agnhost:2.66.1") == ("e2e-test-images/agnhost", "2.66.1")
    assert repository("registry.k8s.io/pause:3.10.2") == ("pause", "3.10.2")


def test_a_manifest_names_files_by_the_digests_that_they_are_named_after(tmp_path: Path) -> None:
    config, layer = tmp_path / "aa.json", tmp_path / "bb.tar"
    config.write_text("{}")
    layer.write_bytes(b"12345")
    made = manifest(config, [layer])
    assert (made["config"]["digest"], made["config"]["size"]) == ("sha256:aa", 2)
    assert [(part["digest"], part["size"]) for part in made["layers"]] == [("sha256:bb", 5)]
