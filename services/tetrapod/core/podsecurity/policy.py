"""What a namespace's labels ask for: a level and a version of the Pod Security Standards to enforce, to audit and to warn about.

Pure; used by the admission plugin PodSecurity. Follows k8s.io/pod-security-admission/api/helpers.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from tetrapod.machinery.field import FieldError, key

PREFIX: Final = "pod-security.kubernetes.io/"
PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
LATEST: Final = "latest"
STRICTNESS: Final = {PRIVILEGED: 0, BASELINE: 1, RESTRICTED: 2}
_VERSION: Final = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")
_INT64: Final = 2**63 - 1


class LevelVersion(NamedTuple):
    level: str
    version: str
    """"latest" or "v1.N", also one that is yet to come."""

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def minor(self) -> int | None:
        """None for the latest."""
        return None if self.version == LATEST else int(self.version[len("v1.") :])


ALLOW_ALL: Final = LevelVersion(PRIVILEGED, LATEST)


class Policy(NamedTuple):
    enforce: LevelVersion = ALLOW_ALL
    audit: LevelVersion = ALLOW_ALL
    warn: LevelVersion = ALLOW_ALL

    @property
    def fully_privileged(self) -> bool:
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED

    def same_effect(self, other: Policy) -> bool:
        """Whether both ask for the same, the version of "privileged" being without meaning."""
        return all(a == b or a.level == b.level == PRIVILEGED for a, b in zip(self, other, strict=True))

    def spelled_out(self, labels: Mapping[str, str]) -> str:
        """Those modes that are not privileged and are asked for by a label."""
        return ", ".join(
            f"{mode}={asked}"
            for mode, asked in zip(self._fields, self, strict=True)
            if asked.level != PRIVILEGED and not labels.keys().isdisjoint((PREFIX + mode, f"{PREFIX}{mode}-version"))
        )


PRIVILEGED_POLICY: Final = Policy()


def from_labels(labels: Mapping[str, str] | None, defaults: Policy = PRIVILEGED_POLICY) -> tuple[Policy, list[FieldError]]:
    """The policy, and what is wrong with the labels: there is a policy all the same, strict to enforce, lax to audit and warn."""
    for name in labels or ():
        if name.startswith(PREFIX):
            break
    else:  # nearly every namespace
        return defaults, []
    errors: list[FieldError] = []
    asked = labels or {}
    enforce = _asked(asked, "enforce", defaults.enforce, RESTRICTED, errors)
    audit = _asked(asked, "audit", defaults.audit, PRIVILEGED, errors)
    warn = _asked(asked, "warn", defaults.warn, PRIVILEGED, errors)
    return Policy(enforce, audit, warn), errors


def _asked(labels: Mapping[str, str], mode: str, default: LevelVersion, fallback: str, errors: list[FieldError]) -> LevelVersion:
    level, version = default
    if (given := labels.get(label := PREFIX + mode)) is not None:
        level = given if given in STRICTNESS else fallback
        if given not in STRICTNESS:
            errors.append(_invalid(label, given, "must be one of privileged, baseline, restricted"))
    if (given := labels.get(label := f"{PREFIX}{mode}-version")) is not None:
        version = given if is_version(given) else LATEST
        if not is_version(given):
            errors.append(_invalid(label, given, 'must be "latest" or "v1.x"'))
    return LevelVersion(level, version)


def is_version(text: str) -> bool:
    """Of the standards: the latest one, or one of Kubernetes v1."""
    match = _VERSION.fullmatch(text)
    return text == LATEST or (match is not None and int(match[1]) <= _INT64)


def _invalid(label: str, value: str, why: str) -> FieldError:
    return FieldError("FieldValueInvalid", key("metadata.labels", label), why, value)
