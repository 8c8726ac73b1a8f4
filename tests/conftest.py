"""Settings of every test run.

Hypothesis tries the same examples each time, so that a failure is everybody's; `make fuzz` looks for new ones. With REQUIRE_TOOLS=1, as
in CI, a test that a missing tool would skip fails instead. The summary names what had to be tried twice.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("steady", derandomize="FUZZ_EXAMPLES" not in os.environ, deadline=None)
settings.load_profile("steady")

NOT_APPLICABLE = "not applicable: "
"""A skip whose reason begins with this is none of a missing tool, and is accepted in CI too."""
RETRIED = "retried"
"""The property of a test that passed at its second try."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn skips into failures where every tool has to be there."""
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
