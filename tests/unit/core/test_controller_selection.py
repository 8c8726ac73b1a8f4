"""Tests of `--controllers`, in upstream's syntax."""

from __future__ import annotations

import pytest

from tetrapod.generic.server.controllers import KNOWN, UnknownControllerError, canonical, enabled


@pytest.mark.parametrize(
    ("selection", "namespace", "cleaner"),
    [
        ("*", True, False),
        ("*,token-cleaner-controller", True, True),
        ("*,-namespace-controller", False, False),
        ("-namespace-controller,*", False, False),
        ("namespace-controller", True, False),
        ("namespace-controller,-namespace-controller", True, False),
        ("tokencleaner,-namespace", False, True),
        ("", False, False),
    ],
)
def test_the_first_mention_of_a_controller_counts(selection: str, namespace: bool, cleaner: bool) -> None:
    chosen = canonical([item for item in selection.split(",") if item])
    assert enabled("namespace-controller", chosen) is namespace
    assert enabled("token-cleaner-controller", chosen) is cleaner


def test_upstreams_other_controllers_are_known_and_nonsense_is_not() -> None:
    assert canonical(["-attachdetach", "node-lifecycle-controller"]) == (
        "-persistentvolume-attach-detach-controller",
        "node-lifecycle-controller",
    )
    with pytest.raises(UnknownControllerError, match='"nonsense" is not in the list of known controllers'):
        canonical(["*", "-nonsense"])


def test_all_controllers_can_be_disabled() -> None:
    selection = canonical(["-*"])
    assert not any(enabled(name, selection) for name in KNOWN)
