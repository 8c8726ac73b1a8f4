"""Settings of every test run.

Hypothesis tries the same examples each time, so that every developer sees the same failures; `make fuzz` tries new
ones. With REQUIRE_TOOLS=1, as in CI, a test fails if it would be skipped because a tool is missing. The summary lists
the tests that needed a retry.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator

import pytest
from hypothesis import settings

from support.forms import STOCK

# As in the Makefile: without bytecode, each server that a test starts would compile a thousand modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("steady", derandomize="FUZZ_EXAMPLES" not in os.environ, deadline=None)
settings.load_profile("steady")

NOT_APPLICABLE = "not applicable: "
"""The prefix of skip reasons that do not name a missing tool. CI accepts these skips."""
RETRIED = "retried"
"""The property of a test that passed at its second try."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run a kube-apiserver as long: `make test` does not build one."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and _names_stock(item.callspec.params):
            item.add_marker(pytest.mark.long)


def _names_stock(params: dict[str, object]) -> bool:
    return any(isinstance(value, str) and value == STOCK for value in params.values())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn skips into failures if REQUIRE_TOOLS=1."""
    report = yield
    if os.environ.get("REQUIRE_TOOLS") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if NOT_APPLICABLE not in reason:
            report.outcome = "failed"
            report.longrepr = f"REQUIRE_TOOLS=1, and the test was skipped: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the tests that passed at their second try, whichever worker ran them."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    retried = sorted(report.nodeid for report in reports if (RETRIED, True) in getattr(report, "user_properties", []))
    if retried:
        terminalreporter.section(f"{len(retried)} tried twice")
        for nodeid in retried:
            terminalreporter.line(nodeid)
