"""The feature gates of the upstream release, and the flag --feature-gates.

As upstream, the gates belong to the process: `configure` sets them once, before the server is assembled.
Upstream: staging/src/k8s.io/component-base/featuregate/feature_gate.go and compatibility/registry.go.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.booleans import parse_bool

log = logging.getLogger(__name__)

SWITCHABLE: Final = frozenset(
    {
        "APIResponseCompression",
        "AllAlpha",
        "AllBeta",
        "AllowParsingUserUIDFromCertAuth",
        "AuthorizePodWebsocketUpgradeCreatePermission",
        "ComponentFlagz",
        "ComponentStatusz",
        "ServiceAccountNodeAudienceRestriction",
        "StorageVersionHash",
        "WatchList",
        "WatchListCompression",
    }
)
"""The gates that have their effect here."""
_ALL: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_COMPONENT: Final = "kube"


class FeatureGateError(ValueError):
    """An invalid value of --feature-gates."""


class FeatureGate(NamedTuple):
    """A feature gate of the upstream release.

    Attributes:
        name: the name.
        stage: ALPHA, BETA, DEPRECATED or GA.
        default: whether it is enabled by default.
        locked: whether it cannot be changed.
        read: whether upstream's kube-apiserver reads it. The others concern kubelets, schedulers and controllers.
        needs: the gates that must be enabled too.
    """

    name: str
    stage: str
    default: bool
    locked: bool
    read: bool
    needs: tuple[str, ...]


_changed: dict[str, bool] = {}


@cache
def known_gates() -> Mapping[str, FeatureGate]:
    """Return all gates that a kube-apiserver of the upstream release knows, by name, sorted. Do not modify it."""
    return {gate.name: gate for gate in _stored_gates()}


def _stored_gates() -> Iterator[FeatureGate]:
    """Yield the gates of `feature_gates.txt`, which tools/generate_feature_gates.py writes."""
    for line in files(__package__).joinpath("feature_gates.txt").read_text().splitlines():
        name, stage, default, locked, read, needs = line.split()
        needed = () if needs == "-" else tuple(needs.split(","))
        yield FeatureGate(name, stage, default == "on", locked == "locked", read == "read", needed)


def enabled(name: str) -> bool:
    """Return whether a gate is enabled in this process. Raises KeyError for an unknown name."""
    value = _changed.get(name)
    return known_gates()[name].default if value is None else value


def gate_states() -> list[tuple[str, str, bool]]:
    """Return name, stage and state in this process of all known gates, sorted by name."""
    return [(gate.name, gate.stage, enabled(gate.name)) for gate in known_gates().values()]


def configure(settings: Sequence[str]) -> None:
    """Set the gates of this process. Those that are not named have their defaults.

    Args:
        settings: the values of --feature-gates, such as `WatchList=false` or `kube:WatchList=false`.

    Raises:
        FeatureGateError: a setting is invalid, or names a gate that has only its default behaviour here, with another
            value. The gates of the process are then unchanged.
    """
    values = parse(settings)
    gates = known_gates()
    named = {setting.partition("=")[0].strip() for setting in _settings_of_component(settings)}
    fixed = [
        name
        for name, value in sorted(values.items())
        if gates[name].read and name not in SWITCHABLE and value != gates[name].default
    ]
    if rejected := [name for name in fixed if name in named]:
        text = f"Tetrapod has only the default behaviour of {', '.join(rejected)} (docs/reference/flags.md)"
        raise FeatureGateError(f"--feature-gates: {text}")
    if fixed:
        switches = " and ".join(f"{switch}={_go(values[switch])}" for switch in _ALL if switch in named)
        log.warning("%s: Tetrapod has only the default behaviour of %s", switches, ", ".join(fixed))
    for name in values:
        if gates[name].stage in ("DEPRECATED", "GA"):
            log.warning(
                "setting %s feature gate %s=%s: it will be removed in a future release",
                gates[name].stage,
                name,
                str(values[name]).lower(),
            )
    _changed.clear()
    _changed.update(values)


def parse(settings: Sequence[str]) -> dict[str, bool]:
    """Return the values of the gates that --feature-gates sets, also of those that AllAlpha and AllBeta set.

    Raises:
        FeatureGateError: a setting is invalid; the text is upstream's.
    """
    given: dict[str, bool] = {}
    for setting in _settings_of_component(settings):
        name, equals, text = (part.strip() for part in setting.partition("="))
        if not equals:
            raise FeatureGateError(f"missing bool value for {name}")
        try:
            given[name] = parse_bool(text)
        except ValueError as error:
            raise FeatureGateError(f"invalid value of {name}={text}, err: {error}") from None
    gates = known_gates()
    errors = []
    for name, value in given.items():
        gate = gates.get(name)
        if gate is None:
            errors.append(f"unrecognized feature gate: {name}")
            raise FeatureGateError(aggregate_errors(errors))
        if gate.locked and gate.default != value:
            text = f"cannot set feature gate {name} to {_go(value)}, feature is locked to {_go(gate.default)}"
            errors.append(text)
    if errors:
        raise FeatureGateError(aggregate_errors(errors))
    values = {
        gate.name: given[switch]
        for switch, stage in _ALL.items()
        if switch in given
        for gate in gates.values()
        if gate.stage == stage and gate.name not in _ALL
    }
    values |= given
    if missing := _missing_needs(values):
        raise FeatureGateError(aggregate_errors(missing))
    return values


def _settings_of_component(settings: Sequence[str]) -> list[str]:
    """Return the settings `name=value` without the name of the component, which may be only `kube`.

    Upstream: component-base/cli/flag, ColonSeparatedMultimapStringString
    """
    by_component: dict[str, list[str]] = {}
    for pair in settings:
        head, colon, tail = pair.partition(":")
        component, setting = (head.strip(), tail.strip()) if colon else ("", head.strip())
        by_component.setdefault(component, []).append(setting)
    if "" in by_component and _COMPONENT in by_component:
        text = "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        raise FeatureGateError(text)
    for component in by_component:
        if component not in ("", _COMPONENT):
            raise FeatureGateError(f"component not registered: {component}")
    return [setting for listed in by_component.values() for setting in listed if setting]


def _missing_needs(values: Mapping[str, bool]) -> list[str]:
    """Return an error text for each enabled gate that needs a disabled one."""
    gates = known_gates()
    on = {name for name, gate in gates.items() if values.get(name, gate.default)}
    errors = []
    for name in sorted(on):
        off = [need for need in gates[name].needs if need not in on]
        if off:
            errors.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]")
    return errors


def _go(value: bool) -> str:
    return str(value).lower()
