"""Write docs/reference/upstream-suites.md from the records."""

from __future__ import annotations

from collections import Counter
from typing import Final

from upstream.packages import PACKAGES, Package
from upstream.results import Result, load
from upstream.workspace import ROOT

_OUT: Final = ROOT / "docs" / "reference" / "upstream-suites.md"
_WIDTH: Final = 200

_HEAD: Final = """# Upstream's integration suites

Written by `make upstream`. Do not edit.

This page is for users who want to know how far Tetrapod behaves like kube-apiserver, and for developers who change it.
The integration suites of Kubernetes v1.37.1 (`k8s.io/kubernetes/test/integration`, and as `crd` those of
`k8s.io/apiextensions-apiserver`) start a kube-apiserver in the process of the test. `tests/upstream` builds them with
patched test servers, which start a Tetrapod process over etcd with the same flags. The tests are not changed.

- *passed*, *failed*: tests and subtests, without those that only have subtests. The failures and their last messages
  are listed below.
- *not applicable*: the test changes parts of the server that only exist in its own process.
- *skipped*: the test skips itself, with kube-apiserver too.
- *unfinished*: the time for the package ran out, or the test program ended before.

Benchmarks (`scheduler_perf`, `logs`, `ipamperf`) are not run. The others ran {minutes} minutes in all.

"""

_KUBECTL: Final = """
## Tests of kubectl

`make upstream-kubectl` runs upstream's tests of kubectl (`hack/make-rules/test-cmd.sh`) over one Tetrapod process, an
etcd and upstream's controller manager. They run unchanged. On 2026-11-30, at commits 400ca413 to 71fa7f3e, 90 of
their 92 functions passed, in groups of up to eight with a new server each. `run_multi_resources_tests` fetches a file
from the internet, which the machine cannot reach. `run_nodes_tests` expects the conditions that the controller
manager gives a Node without a kubelet a minute after its creation, and came 64 seconds after it.
"""


def line(package: Package, result: Result) -> str:
    """Return one line for the terminal."""
    return (
        f"{package.name}: {result.passed} passed, {len(result.failed)} failed, "
        f"{len(result.not_applicable)} not applicable, {len(result.skipped)} skipped, "
        f"{len(result.unfinished)} unfinished in {result.seconds} s"
    )


def write() -> None:
    """Write the page."""
    records = {package: load(package) for package in PACKAGES}
    done = {package: result for package, result in records.items() if result is not None}
    minutes = sum(result.seconds for result in done.values()) // 60
    text = _HEAD.format(minutes=minutes)
    text += "| package | passed | failed | not applicable | skipped | unfinished | commit |\n"
    text += "|---|--:|--:|--:|--:|--:|---|\n"
    for package, result in done.items():
        text += _row(package.name, _counts(result), result.commit)
    text += _row("**all**", [sum(column) for column in zip(*map(_counts, done.values()), strict=True)], "")
    missing = [f"`{package.name}`" for package, result in records.items() if result is None]
    if missing:
        text += f"\nNot run yet: {', '.join(missing)}.\n"
    text += _section("Failed", {package: result.failed for package, result in done.items()})
    text += _reasons("Unfinished", {package: result.unfinished for package, result in done.items()})
    text += _reasons("Not applicable", {package: result.not_applicable for package, result in done.items()})
    text += _reasons("Skipped", {package: result.skipped for package, result in done.items()})
    _OUT.write_text(text + _KUBECTL)


def _counts(result: Result) -> list[int]:
    others = (result.failed, result.not_applicable, result.skipped, result.unfinished)
    return [result.passed, *map(len, others)]


def _row(name: str, counts: list[int], commit: str) -> str:
    return f"| {name} | {' | '.join(str(count or '') for count in counts)} | {commit} |\n"


def _section(title: str, tests: dict[Package, dict[str, str]]) -> str:
    rows = [(package.name, name, _cell(text)) for package, found in tests.items() for name, text in found.items()]
    lines = [f"| {package} | `{name}` | {text} |\n" for package, name, text in rows]
    return f"\n## {title}\n\n| package | test | message |\n|---|---|---|\n{''.join(lines)}" if lines else ""


def _reasons(title: str, tests: dict[Package, dict[str, str]]) -> str:
    counts = Counter((package.name, _cell(reason)) for package, found in tests.items() for reason in found.values())
    lines = [f"| {package} | {count} | {reason} |\n" for (package, reason), count in counts.items()]
    return f"\n## {title}\n\n| package | tests | reason |\n|---|--:|---|\n{''.join(lines)}" if lines else ""


def _cell(text: str) -> str:
    """Return a message as the text of a cell: in code font, because it can contain any mark-up."""
    clean = text.replace("|", "¦").replace("`", "'")[:_WIDTH].strip()
    return f"`{clean}`" if clean else ""
