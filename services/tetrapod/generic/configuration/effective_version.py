"""The release that the server emulates: --emulated-version and --min-compatibility-version.

As upstream, it belongs to the process: `configure` sets it once, before the server is assembled.
Upstream: staging/src/k8s.io/component-base/compatibility and apiserver/pkg/util/compatibility.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tetrapod.generic.configuration.version import KUBERNETES, RELEASE
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.versions import parse_generic

Release = tuple[int, int]

FLOOR: Final = (1, 34)
"""The oldest release that can be emulated: three before this one."""
_COMPONENT: Final = "kube"


class EffectiveVersionError(ValueError):
    """An invalid value of --emulated-version or --min-compatibility-version; the text is upstream's."""


class EffectiveVersion(NamedTuple):
    """The effective version of the server.

    Attributes:
        emulated: the release whose APIs and feature gates the server has.
        min_compatibility: the oldest release of the components that the server coexists with.
        forward_compatible: whether versions that are newer than `emulated` are served if an older version of the same
            resource is served.
        runtime_config_forward_compatible: whether --runtime-config may enable versions that are newer than `emulated`.
    """

    emulated: Release = RELEASE
    min_compatibility: Release = (RELEASE[0], RELEASE[1] - 1)
    forward_compatible: bool = False
    runtime_config_forward_compatible: bool = False


_effective = [EffectiveVersion()]


def effective_version() -> EffectiveVersion:
    """Return the effective version of this process."""
    return _effective[0]


def configure(
    emulated: Sequence[str] = (),
    min_compatibility: Sequence[str] = (),
    *,
    forward_compatible: bool = False,
    runtime_config_forward_compatible: bool = False,
) -> None:
    """Set the effective version of this process.

    Args:
        emulated: the values of --emulated-version, such as `1.36` or `kube=1.36`.
        min_compatibility: the values of --min-compatibility-version. By default it is the release before the emulated
            one, or the oldest one that is possible.
        forward_compatible: the value of --emulation-forward-compatible.
        runtime_config_forward_compatible: the value of --runtime-config-emulation-forward-compatible.

    Raises:
        EffectiveVersionError: a value is invalid. The effective version is then unchanged.
    """
    release = _release(emulated) or RELEASE
    oldest = _release(min_compatibility) or max((release[0], release[1] - 1), FLOOR)
    errors = []
    if not FLOOR <= release <= RELEASE:
        binary = KUBERNETES.rpartition(".")[0] + ".0"
        errors.append(f"emulation version {_text(release)} is not between [{_text(FLOOR)}, {binary}]")
    if not FLOOR <= oldest <= release:
        limits = f"[{_text(FLOOR)}, {_text(release)}]"
        errors.append(f"minCompatibilityVersion version {_text(oldest)} is not between {limits}")
    for name, value in (
        ("EmulationForwardCompatible", forward_compatible),
        ("RuntimeConfigEmulationForwardCompatible", runtime_config_forward_compatible),
    ):
        if value and release == RELEASE:
            reason = "cannot be set to true if the emulation version is the same as the binary version"
            errors.append(f"ServerRunOptions.{name} {reason}")
    if errors:
        raise EffectiveVersionError(aggregate_errors(errors))
    _effective[0] = EffectiveVersion(release, oldest, forward_compatible, runtime_config_forward_compatible)


def _release(settings: Sequence[str]) -> Release | None:
    """Return the release that the values of a flag set, or None without values.

    Raises:
        EffectiveVersionError: a value is invalid; the text is upstream's.
    """
    releases: dict[str, tuple[int, ...]] = {}
    for setting in settings:
        component, equals, text = setting.partition("=")
        component, text = (component.strip(), text.strip()) if equals else (_COMPONENT, component)
        try:
            parts = tuple(map(int, parse_generic(text)))
        except ValueError as error:
            raise EffectiveVersionError(str(error)) from None
        if len(parts) > 2 and parts[2]:
            raise EffectiveVersionError(f"patch version not allowed, got: {component}={_text(parts)}")
        if component in releases:
            pair = f"{component}={_text(releases[component])} and {component}={_text(parts)}"
            raise EffectiveVersionError(f"duplicate version flag, {pair}")
        releases[component] = parts
    for component in releases:
        if component != _COMPONENT:
            raise EffectiveVersionError(f"component not registered: {component}")
    return next(((major, minor) for major, minor, *_ in releases.values()), None)


def _text(parts: Sequence[int]) -> str:
    return ".".join(map(str, parts))
