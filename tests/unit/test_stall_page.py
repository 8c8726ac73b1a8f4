"""Tests that `make stall ARGS=--update` replaces the figures of the measured cases in docs/reference/stalls.md only."""

from __future__ import annotations

from stall.measure import Result, Sample
from stall.updating import updated

_PAGE = """# Requests

| group | cases | one process | four services | kube-apiserver |
|---|---|---|---|---|
| `heads` | 1 | 1 | 1 | 1 |

Text.

## Summary

| server | cases | fail | longest wait: anonymous, user, editor (ms) |
|---|---|---|---|
| one process | 1 | 0 | 0, 0, 0 |

## Anonymous

| case | bytes | one process: wait | CPU | growth | memory | four services: wait | CPU | growth | memory |
|---|---|---|---|---|---|---|---|---|---|
| query: ampersands | 1,040 | 4 | 0.01 |  | 1 | 8 | 0.01 |  | 1 |
| query: semicolons | 1,041 | **600** | 0.01 |  | 0 | 18 | 0.03 |  | 0 |
| query: percent signs | 1,041 | 6 | 0.01 |  | 0 | 18 | 0.03 |  | 0 | 206 | 0.5 |  | 0 |
| a case of the past | 1,041 | 6 | 0.01 |  | 0 | 18 | 0.03 |  | 0 |
"""


def _result(case: str, who: str, seconds: float) -> Result:
    return Result(case, who, [Sample(4, 2048, 200, seconds, 1.5, seconds, 0.0)], 3e6)


def test_only_the_measured_cases_change() -> None:
    results = [_result("query: semicolons", "anonymous", 0.05), _result("audit: YAML", "user", 0.2)]
    page = updated(_PAGE + "\n## User\n\n", {"one": results}).splitlines()
    assert "| query: ampersands | 1,040 | 4 | 0.01 |  | 1 | 8 | 0.01 |  | 1 |  |  |  |  |" in page
    assert "| query: semicolons | 2,048 | 50 | 1.50 |  | 3 | 18 | 0.03 |  | 0 |  |  |  |  |" in page
    assert "| audit: YAML | 2,048 | **200** | 1.50 |  | 3 |  |  |  |  |  |  |  |  |" in page
    assert not [line for line in page if "past" in line]
    assert "| one process | 4 | 1 | 50, 200, 0 |" in page
    assert "| four services | 3 | 0 | 18, 0, 0 |" in page
    assert "| kube-apiserver | 1 | 1 | 206, 0, 0 |" in page
    assert "Text." in page
    assert any(line.startswith("| `heads` | ") and line.endswith(" | 3 | 3 | 1 |") for line in page)
