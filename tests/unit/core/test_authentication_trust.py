"""The union of what several API servers write to the ConfigMap `extension-apiserver-authentication`."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tetrapod.core.bootstrap.authentication_trust import united
from tetrapod.generic.certificates.authority import Authority

AUTHORITY = Authority.create("authority")


def certificate(name: str, **life: int) -> str:
    return AUTHORITY.issue_client(name, life=timedelta(**life))[0].decode()


def test_stored_certificates_come_first_and_none_is_repeated() -> None:
    ours, both, theirs = (certificate(name, days=1) for name in ("ours", "both", "theirs"))
    present = {
        "client-ca-file": theirs + both,
        "requestheader-client-ca-file": theirs,
        "requestheader-allowed-names": '["theirs","both"]',
        "requestheader-username-headers": '["X-Theirs"]',
        "unknown": "is removed",
    }
    required = {
        "client-ca-file": f"\n{both}\n{ours}",
        "requestheader-client-ca-file": ours,
        "requestheader-allowed-names": '["both","ours"]',
        "requestheader-group-headers": '["X-Group"]',
        "requestheader-uid-headers": "[]",
    }
    assert united(present, required) == {
        "client-ca-file": theirs + both + ours,
        "requestheader-client-ca-file": theirs + ours,
        "requestheader-allowed-names": '["theirs","both","ours"]',
        "requestheader-extra-headers-prefix": "[]",
        "requestheader-group-headers": '["X-Group"]',
        "requestheader-username-headers": '["X-Theirs"]',
    }


def test_expired_certificates_are_removed_after_five_minutes() -> None:
    kept, removed = certificate("kept", minutes=-4), certificate("removed", minutes=-5)
    assert united({"client-ca-file": removed + kept}, {}) == {"client-ca-file": kept}
    assert united({"requestheader-client-ca-file": removed, "requestheader-allowed-names": '["front"]'}, {}) == {}


def stored(allowed_names: str) -> dict[str, str]:
    return {"requestheader-client-ca-file": certificate("front", days=1), "requestheader-allowed-names": allowed_names}


@pytest.mark.parametrize("empty", ["", "null", "[]"])
def test_an_empty_list_is_written_as_such(empty: str) -> None:
    assert united(stored(empty), {})["requestheader-allowed-names"] == "[]"


@pytest.mark.parametrize("malformed", ["{", '{"a":1}', "[1]"])
def test_a_malformed_list_is_an_error(malformed: str) -> None:
    with pytest.raises(ValueError, match=r"list of strings|end of data"):
        united(stored(malformed), {})
