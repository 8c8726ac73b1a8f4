"""The built-in group-versions and resources that are served, as --runtime-config selects them.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/api_enablement.go, pkg/server/resourceconfig/helpers.go and
pkg/server/storage/resource_config.go; pkg/controlplane/instance.go, DefaultAPIResourceConfigSource.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.configuration.effective_version import EffectiveVersion, effective_version
from tetrapod.generic.configuration.version import RELEASE
from tetrapod.generic.openapi.registered_versions import registered_versions
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.booleans import parse_bool
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupVersion, GroupVersionResource
from tetrapod.machinery.types import groups, resource_facts
from tetrapod.machinery.types.lifecycles import Lifecycle, lifecycle

_PATTERNS: Final[Mapping[str, Callable[[str], object]]] = {
    "api/all": re.compile("").match,
    "api/ga": re.compile(r"v[0-9]+").fullmatch,
    "api/beta": re.compile(r"v[0-9]+beta[0-9]+").fullmatch,
    "api/alpha": re.compile(r"v[0-9]+alpha[0-9]+").fullmatch,
}
"""The keys that select group-versions by their version, in the order in which they are applied."""
_CONSIDER: Final = "Consider setting --runtime-config-emulation-forward-compatible=true"
_SERVE_REMOVED: Final = "KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE"
_FLOW_CONTROL: Final = ("flowcontrol.apiserver.k8s.io/v1", "api/ga", "api/all")
_OFF_BY_DEFAULT: Final = {
    "admissionregistration.k8s.io": ("v1beta1", "v1alpha1"),
    "authentication.k8s.io": ("v1beta1", "v1alpha1"),
    "certificates.k8s.io": ("v1beta1", "v1alpha1"),
    "coordination.k8s.io": ("v1beta1", "v1alpha2"),
    "flowcontrol.apiserver.k8s.io": ("v1beta1", "v1beta2", "v1beta3"),
    "internal.apiserver.k8s.io": ("v1alpha1",),
    "lifecycle.k8s.io": ("v1alpha1",),
    "networking.k8s.io": ("v1beta1",),
    "resource.k8s.io": ("v1beta1", "v1beta2", "v1alpha3"),
    "scheduling.k8s.io": ("v1beta1", "v1alpha3"),
    "storage.k8s.io": ("v1beta1", "v1alpha1"),
    "storagemigration.k8s.io": ("v1beta1",),
}
"""The group-versions that upstream serves only if they are enabled.

Upstream no longer has resources in some of them, such as networking.k8s.io/v1beta1. Enabling these has no effect,
unless removed ones are served for one more release (`_is_removed`).
"""
_GATES: Final = {
    ("certificates.k8s.io", "clustertrustbundles"): "ClusterTrustBundle",
    ("certificates.k8s.io", "podcertificaterequests"): "PodCertificateRequest",
    ("lifecycle.k8s.io", "evictions"): "EvictionRequestAPI",
    ("lifecycle.k8s.io", "evictionrequests"): "EvictionRequestAPI",
    ("storagemigration.k8s.io", "storageversionmigrations"): "StorageVersionMigrator",
    ("scheduling.k8s.io", "workloads"): "GenericWorkload",
    ("scheduling.k8s.io", "podgroups"): "GenericWorkload",
    ("scheduling.k8s.io", "compositepodgroups"): "CompositePodGroup",
}
"""The feature gates of some resources, by (group, resource). A resource whose gate is disabled is not served.

Those of certificates.k8s.io and storagemigration.k8s.io are enabled by default in this release.
"""
_OPTIONAL_RESOURCES: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"bindings", "componentstatuses", "limitranges", "podtemplates", "replicationcontrollers"}),
    "admissionregistration.k8s.io": frozenset(),
    "apiextensions.k8s.io": frozenset(),
    "apiregistration.k8s.io": frozenset(),
    "authentication.k8s.io": frozenset({"selfsubjectreviews"}),
    "authorization.k8s.io": frozenset(
        {"localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}
    ),
    "coordination.k8s.io": frozenset(),
    "discovery.k8s.io": frozenset(),
    "events.k8s.io": frozenset(),
    "flowcontrol.apiserver.k8s.io": frozenset(),
    "networking.k8s.io": frozenset({"ingressclasses", "ingresses", "networkpolicies"}),
    "rbac.authorization.k8s.io": frozenset(),
    "scheduling.k8s.io": frozenset(),
}
"""The groups that the server itself needs, each with those of its resources that can be disabled nevertheless.

All resources of other groups can be disabled.
"""


class RuntimeConfigError(ValueError):
    """An invalid value of --runtime-config."""


@dataclass(frozen=True, slots=True)
class ResourceConfig:
    """The built-in resources that are served: all except those that are disabled, by default or by the configuration.

    Attributes:
        versions: whether a group-version is enabled, by group-version; one that is missing has its default.
        resources: whether a single resource is enabled, by group, version and resource. It overrides `versions`.
    """

    versions: Mapping[GroupVersion, bool] = field(default_factory=dict)
    resources: Mapping[GroupVersionResource, bool] = field(default_factory=dict)

    def enabled(self, group: str, version: str, resource: str) -> bool:
        """Return whether a resource is served in a version."""
        gate = _GATES.get((group, resource))
        if gate is not None and not feature_gates.enabled(gate):
            return False
        single = self.resources.get(GroupVersionResource(group, version, resource))
        if single is not None:
            return single
        configured = self.versions.get(GroupVersion(group, version))
        return not _off_by_default(group, version) if configured is None else configured

    def serves(self, group: str, version: str) -> bool:
        """Return whether any built-in resource is served in a group-version."""
        if not self.versions and not self.resources:
            return not _off_by_default(group, version)  # without reading the facts of all resources
        return any(self.enabled(group, version, facts.name) for facts in resource_facts(group, version))


def _off_by_default(group: str, version: str) -> bool:
    return version in _OFF_BY_DEFAULT.get(group, ())


EVERYTHING: Final = ResourceConfig()
"""The resources that are served by default."""


def resource_config(settings: Sequence[str], *, flow_control: bool = False) -> ResourceConfig:
    """Return the resources to serve for the values of --runtime-config.

    Args:
        settings: pairs such as `api/beta=false`, `autoscaling/v1=false`, `apps/v1/deployments=true`. `KEY` alone means
            `KEY=true`.
        flow_control: whether the process has API priority and fairness, which needs its group.

    Raises:
        RuntimeConfigError: a setting is invalid (with upstream's text) or disables a resource that the server needs.
    """
    overrides = _overrides(settings)
    release = effective_version()
    if not overrides and release.emulated == RELEASE:
        return EVERYTHING
    _validate(overrides, flow_control=flow_control)
    known = [GroupVersion(group.name, version) for group in groups() for version in (*group.versions, *group.optional)]
    versions: dict[GroupVersion, bool] = {}
    for pattern, matches in _PATTERNS.items():
        value = overrides.get(pattern)
        if value is None:
            continue
        if value not in ("true", "false"):
            raise RuntimeConfigError(f"invalid value {pattern}={value}")
        versions |= {gv: value == "true" for gv in known if matches(gv.version)}
    resources: dict[GroupVersionResource, bool] = {}
    for key, value in overrides.items():
        if key not in _PATTERNS:
            gv, resource = _parse(key)
            on = _bool(key, value)
            if resource:
                resources[GroupVersionResource(*gv, resource)] = on
            else:
                versions[gv] = on
    config = ResourceConfig(versions, resources)
    _check_needed(config)
    named = {GroupVersion(*key.split("/")[:2]) for key in overrides if key.count("/") == 1 and key not in _PATTERNS}
    explicit = _Explicit(
        {gv for gv in named if versions.get(gv)}, {gvr for gvr, enabled in resources.items() if enabled}
    )
    return ResourceConfig(versions, {**resources, **_unavailable(config, explicit, release)})


class _Explicit(NamedTuple):
    """The group-versions and resources that --runtime-config enables by name, and not by api/all or the like."""

    versions: Collection[GroupVersion]
    resources: Collection[GroupVersionResource]


def _unavailable(
    config: ResourceConfig, explicit: _Explicit, release: EffectiveVersion
) -> dict[GroupVersionResource, bool]:
    """Return the enabled resources that the emulated release does not have, each with the value False.

    The caller merges the result into `ResourceConfig.resources`.
    Upstream: k8s.io/apiserver/pkg/server/deleted_kinds.go, RemoveUnavailableKinds.

    Args:
        config: the configuration without regard to releases.
        explicit: what --runtime-config enables by name.
        release: the effective version of the server.

    Raises:
        RuntimeConfigError: a resource or a version is enabled by name that was introduced later.
    """
    unavailable: dict[GroupVersionResource, bool] = {}
    for group in groups():
        older: set[str] = set()  # the resources that are served in a version of less priority
        for version in reversed((*group.versions, *group.optional)):
            gv, newer, kept = GroupVersion(group.name, version), 0, 0
            for facts in resource_facts(group.name, version):
                gvr = GroupVersionResource(*gv, facts.name)
                if not config.enabled(*gvr):
                    continue
                kind = lifecycle(str(GroupVersion(facts.kind.group, facts.kind.version)), facts.kind.kind)
                if _is_removed(kind, release):
                    unavailable[gvr] = False
                elif _is_newer(gvr, kind, explicit, release, lower=facts.name in older):
                    unavailable[gvr] = False
                    newer += 1
                else:
                    kept += 1
                    older |= set() if "alpha" in version else {facts.name}
            if newer and not kept and gv in explicit.versions:
                later = f"all the resources have been introduced after the current version {_release(release.emulated)}"
                raise RuntimeConfigError(f"cannot enable version {gv} in runtime-config because {later}. {_CONSIDER}")
    return unavailable


def _is_removed(kind: Lifecycle, release: EffectiveVersion) -> bool:
    """Return whether a kind was removed before the emulated release, or in it.

    With KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE in the environment, what was removed in it is still served.

    Raises:
        RuntimeConfigError: the value of the variable is not a bool.
    """
    if kind.removed is None or kind.removed > release.emulated:
        return False
    value = os.environ.get(_SERVE_REMOVED)
    try:
        one_more = value is not None and parse_bool(value)
    except ValueError as error:
        raise RuntimeConfigError(str(error)) from None
    return kind.removed < release.emulated or not one_more


def _is_newer(
    gvr: GroupVersionResource, kind: Lifecycle, explicit: _Explicit, release: EffectiveVersion, *, lower: bool
) -> bool:
    """Return whether a resource is not served because it was introduced after the emulated release.

    Upstream: deleted_kinds.go, shouldServeBasedOnVersionIntroduced.

    Args:
        gvr: the resource.
        kind: the lifecycle of its kind.
        explicit: what --runtime-config enables by name.
        release: the effective version of the server.
        lower: whether the resource is served in another version with a lower priority. With
            --emulation-forward-compatible it is then served in this version too.

    Raises:
        RuntimeConfigError: the resource is enabled by its name.
    """
    if kind.introduced is None or kind.introduced <= release.emulated:
        return False
    named = gvr in explicit.resources
    if release.forward_compatible and lower:
        return False
    if release.runtime_config_forward_compatible and (
        named or GroupVersion(gvr.group, gvr.version) in explicit.versions
    ):
        return False
    if named:
        resource_text = f"{gvr.group}/{gvr.version}, Resource={gvr.resource}"
        later = (
            f"it is introduced at {_release(kind.introduced)} after the current version {_release(release.emulated)}"
        )
        raise RuntimeConfigError(
            f"cannot enable resource {resource_text} in runtime-config because {later}. {_CONSIDER}"
        )
    return True


def _release(release: tuple[int, int]) -> str:
    return f"{release[0]}.{release[1]}"


def _overrides(settings: Sequence[str]) -> dict[str, str]:
    """Return the values of KEY=VALUE settings by key; the last one of a key wins. A missing value is "".

    The forms of the core group (`v1`, `api/v1`) become `/v1`, also for its resources. `api/legacy` is left out.

    Upstream: pkg/controlplane/apiserver/options/options.go, Complete
    """
    overrides: dict[str, str] = {}
    for setting in settings:
        key, _, value = (part.strip() for part in setting.partition("="))
        if key in ("v1", "api/v1") or key.startswith(("v1/", "api/v1/")):
            key = "/v1"
        if key != "api/legacy":
            overrides[key] = value
    return overrides


def _validate(overrides: Mapping[str, str], *, flow_control: bool) -> None:
    """Check the keys of --runtime-config, and with `flow_control` that its group is not disabled.

    Upstream: APIEnablementOptions.Validate and validateAPIPriorityAndFairness.

    Args:
        overrides: the result of `_overrides`.
        flow_control: whether API priority and fairness is enabled.

    Raises:
        RuntimeConfigError: all errors, with upstream's texts.
    """
    errors = []
    if flow_control:
        text = ",".join(f"{key}={value}" for key, value in sorted(overrides.items()))
        decisive = next((key for key in _FLOW_CONTROL if f"{key}=false" in text or f"{key}=true" in text), None)
        if decisive is not None and f"{decisive}=false" in text:
            errors.append(f"--runtime-config={decisive}=false conflicts with --enable-priority-and-fairness=true")
    if overrides == {"api/all": "false"}:
        errors.append("invalid runtime-config with only api/all=false")
    else:
        malformed = next((key for key in overrides if key not in _PATTERNS and key.count("/") not in (1, 2)), None)
        unknown = {str(gv) for gv in _named(overrides) if gv.group not in registered_versions()}
        if malformed is not None:
            errors.append(f"runtime-config invalid key {malformed}")
        elif unknown:
            errors.append(f"unknown api groups {','.join(sorted(unknown))}")
    if errors:
        raise RuntimeConfigError(aggregate_errors(errors))


def _named(overrides: Mapping[str, str]) -> list[GroupVersion]:
    return [GroupVersion(*key.split("/")[:2]) for key in overrides if key not in _PATTERNS and "/" in key]


def _parse(key: str) -> tuple[GroupVersion, str]:
    """Return the group-version that a key names, and its resource, or "" if it names none.

    Raises:
        RuntimeConfigError: the version is unknown, or the resource is not in lower case.
    """
    group, version, *rest = key.split("/")
    resource = rest[0] if rest else ""
    if version not in registered_versions()[group]:
        raise RuntimeConfigError(f"group version {GroupVersion(group, version)} that has not been registered")
    if resource != resource.lower():
        problem = f"group/version/resource and resource is always lowercase plural, not {go_quote(resource)}"
        raise RuntimeConfigError(f"invalid key {key}: {problem}")
    return GroupVersion(group, version), resource


def _bool(key: str, value: str) -> bool:
    try:
        return not value or parse_bool(value)
    except ValueError as error:
        raise RuntimeConfigError(f"invalid value of {key}: {value}, err: {error}") from None


def _check_needed(config: ResourceConfig) -> None:
    """Raise RuntimeConfigError if a configuration disables resources that the server itself needs."""
    disabled = [
        f"{GroupVersion(group.name, version)}/{facts.name}"
        for group in groups()
        if group.name in _OPTIONAL_RESOURCES
        for version in group.versions
        for facts in resource_facts(group.name, version)
        if facts.name not in _OPTIONAL_RESOURCES[group.name] and not config.enabled(group.name, version, facts.name)
    ]
    if disabled:
        names = ", ".join(disabled[:3]) + (f" and {len(disabled) - 3} more" if len(disabled) > 3 else "")
        raise RuntimeConfigError(f"--runtime-config: {names} cannot be disabled, because the server itself needs it")
