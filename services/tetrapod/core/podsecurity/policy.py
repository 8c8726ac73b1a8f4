"""The Pod Security policy in a namespace's labels.

The labels name a level and a version of the Pod Security Standards to enforce, to audit and to warn about.

Without I/O; used by the admission plugin PodSecurity. Follows k8s.io/pod-security-admission/api/helpers.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from tetrapod.machinery.field import FieldError, key
from tetrapod.machinery.golang.integers import parse_int

PREFIX: Final = "pod-security.kubernetes.io/"
PRIVILEGED: Final = "privileged"
BASELINE: Final = "baseline"
RESTRICTED: Final = "restricted"
LATEST: Final = "latest"
STRICTNESS: Final = {PRIVILEGED: 0, BASELINE: 1, RESTRICTED: 2}
_VERSION: Final = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")


class LevelVersion(NamedTuple):
    """A level and a version of the Pod Security Standards.

    Attributes:
        level: "privileged", "baseline" or "restricted".
        version: "latest" or "v1.N"; N may be a future version.
    """

    level: str
    version: str

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def minor(self) -> int | None:
        """The number N of a version "v1.N"; None for "latest"."""
        return None if self.version == LATEST else int(self.version[len("v1.") :])


ALLOW_ALL: Final = LevelVersion(PRIVILEGED, LATEST)


class Policy(NamedTuple):
    """The level and version of each mode: enforce, audit and warn."""

    enforce: LevelVersion = ALLOW_ALL
    audit: LevelVersion = ALLOW_ALL
    warn: LevelVersion = ALLOW_ALL

    @property
    def fully_privileged(self) -> bool:
        """Whether all three modes have the level privileged, so that nothing has to be evaluated."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED

    def same_effect(self, other: Policy) -> bool:
        """Return whether both policies have equal levels and versions; versions of the level privileged are ignored."""
        return all(a == b or a.level == b.level == PRIVILEGED for a, b in zip(self, other, strict=True))

    def spelled_out(self, labels: Mapping[str, str]) -> str:
        """Return, for a warning, the modes that have a label in `labels` and another level than privileged.

        The form is "enforce=baseline:latest, warn=restricted:v1.30"; "" if no mode has both.
        """
        return ", ".join(
            f"{mode}={level_version}"
            for mode, level_version in zip(self._fields, self, strict=True)
            if level_version.level != PRIVILEGED
            and not labels.keys().isdisjoint((PREFIX + mode, f"{PREFIX}{mode}-version"))
        )


PRIVILEGED_POLICY: Final = Policy()


def from_labels(
    labels: Mapping[str, str] | None, defaults: Policy = PRIVILEGED_POLICY
) -> tuple[Policy, list[FieldError]]:
    """Return the policy in a namespace's labels, and the errors about invalid labels.

    Modes without labels have the default. An invalid level is replaced by restricted for enforce, and by privileged for
    audit and warn. An invalid version is replaced by "latest". Without a label of its own, warn has at least the level
    in the label of enforce, and its version unless it has a label for the version.

    Args:
        labels: the labels of the namespace, or None.
        defaults: the policy of modes without labels.
    """
    for name in labels or ():
        if name.startswith(PREFIX):
            break
    else:  # most namespaces have no such labels
        return defaults, []
    errors: list[FieldError] = []
    label_values = labels or {}
    enforce = _level_and_version(label_values, "enforce", defaults.enforce, RESTRICTED, errors)
    audit = _level_and_version(label_values, "audit", defaults.audit, PRIVILEGED, errors)
    warn = _level_and_version(label_values, "warn", defaults.warn, PRIVILEGED, errors)
    enforced = STRICTNESS.get(label_values.get(f"{PREFIX}enforce", ""), 0)
    if f"{PREFIX}warn" not in label_values and enforced > STRICTNESS[warn.level]:
        version = warn.version if f"{PREFIX}warn-version" in label_values else enforce.version
        warn = LevelVersion(enforce.level, version)
    return Policy(enforce, audit, warn), errors


def _level_and_version(
    labels: Mapping[str, str], mode: str, default: LevelVersion, fallback: str, errors: list[FieldError]
) -> LevelVersion:
    """Return the level and version of one mode in the labels, and append errors about them to `errors`.

    Args:
        default: the level and version if the labels are missing.
        fallback: the level in place of an invalid one.
    """
    level, version = default
    if (value := labels.get(label := PREFIX + mode)) is not None:
        level = value if value in STRICTNESS else fallback
        if value not in STRICTNESS:
            errors.append(_invalid(label, value, "must be one of privileged, baseline, restricted"))
    if (value := labels.get(label := f"{PREFIX}{mode}-version")) is not None:
        version = value if is_version(value) else LATEST
        if not is_version(value):
            errors.append(_invalid(label, value, 'must be "latest" or "v1.x"'))
    return LevelVersion(level, version)


def is_version(text: str) -> bool:
    """Return whether the text is "latest" or "v1.N", with N an integer of at most 64 bits."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return text == LATEST
    try:
        parse_int(match[1])
    except ValueError:
        return False
    return True


def _invalid(label: str, value: str, why: str) -> FieldError:
    return FieldError("FieldValueInvalid", key("metadata.labels", label), why, value)
