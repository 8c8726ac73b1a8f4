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

from tetrapod.generic.configuration.effective_version import EffectiveVersion, effective_version
from tetrapod.machinery.error_aggregate import aggregate_errors
from tetrapod.machinery.golang.booleans import parse_bool

log = logging.getLogger(__name__)

SWITCHABLE: Final = frozenset(
    {
        "APIResponseCompression",
        "APIServerIdentity",
        "APIServerWebhookAuthenticationToken",
        "AllAlpha",
        "AllBeta",
        "AllowInsecureKubeletCertificateSigningRequests",
        "AllowParsingUserUIDFromCertAuth",
        "AllowUnsafeMalformedObjectDeletion",
        "AtomicWriteVolumeUserFields",
        "AuthorizePodWebsocketUpgradeCreatePermission",
        "CBORServingAndStorage",
        "CSIVolumeHealth",
        "ClearingNominatedNodeNameAfterBinding",
        "ClusterTrustBundle",
        "ClusterTrustBundleProjection",
        "ComponentFlagz",
        "ComponentStatusz",
        "CompositePodGroup",
        "ConsistentListFromCacheSkipTimeoutFallback",
        "ConstrainedImpersonation",
        "ContainerRestartRules",
        "ContainerStopSignals",
        "CoordinatedLeaderElection",
        "CrossNamespaceVolumeDataSource",
        "DRAAdminAccess",
        "DRAConsumableCapacity",
        "DRADerivedAttributes",
        "DRADeviceBindingConditions",
        "DRADeviceCompatibilityGroups",
        "DRADeviceTaintRules",
        "DRADeviceTaints",
        "DRAExtendedResource",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAPartitionableDevices",
        "DRAPartitionableDevicesType",
        "DRAPrioritizedList",
        "DRAResourceClaimDeviceStatus",
        "DRAResourceClaimGranularStatusAuthorization",
        "DRAResourcePoolStatus",
        "DRAWorkloadResourceClaims",
        "DeclarativeValidationBeta",
        "DeploymentReplicaSetTerminatingReplicas",
        "DetectCacheInconsistency",
        "DynamicResourceAllocation",
        "EmptyDirVolumeMode",
        "EnvFiles",
        "EvictionRequestAPI",
        "ExcludeAdmissionWebhookVirtualResources",
        "ExtendWebSocketsToKubelet",
        "ExternalServiceAccountTokenSigner",
        "GRPCContainerProbeTLS",
        "GenericWorkload",
        "H2CContainerProbe",
        "HPAGeneration",
        "HPAScaleToZero",
        "ImageVolumeWithDigest",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "InPlacePodVerticalScalingMemoryBackedVolumes",
        "InPlacePodVerticalScalingSchedulerPreemption",
        "KMSv1",
        "KubeletInUserNamespace",
        "KubeletServiceAccountTokenForCredentialProviders",
        "ListFromCacheSnapshot",
        "ManifestBasedAdmissionControlConfig",
        "MatchLabelKeysInPodTopologySpread",
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        "MaxUnavailableStatefulSet",
        "MutablePVNodeAffinity",
        "MutablePodResourcesForSuspendedJobs",
        "MutableSchedulingDirectivesForSuspendedJobs",
        "MutatingAdmissionPolicy",
        "NativeHistograms",
        "NodeDeclaredFeatures",
        "OpenAPIEnums",
        "PodCertificateRequest",
        "PodDeletionCost",
        "PodGroupPreemptionPolicy",
        "PodLevelResources",
        "PodLevelResourcesFixDefaulting",
        "PodLevelResourcesFixKubeletQOSClass",
        "PodLogsQuerySplitStreams",
        "PodTopologyLabelsAdmission",
        "PortForwardWebsockets",
        "RelaxedServiceNameValidation",
        "RemoteRequestHeaderUID",
        "ResourceHealthStatus",
        "ResourceHealthStatusMessage",
        "RestartAllContainersOnContainerExits",
        "SELinuxMount",
        "ServiceAccountNodeAudienceRestriction",
        "ServiceCIDRStatusFieldWiping",
        "ShardedListAndWatch",
        "SizeBasedListCostEstimate",
        "StatefulSetRecreateStrategy",
        "StorageVersionAPI",
        "StorageVersionHash",
        "StorageVersionMigrator",
        "StrictIPCIDRValidation",
        "StructuredAuthenticationConfigurationEgressSelector",
        "StructuredAuthenticationConfigurationJWKSMetrics",
        "TaintTolerationComparisonOperators",
        "TokenRequestServiceAccountUIDValidation",
        "TopologyAwareWorkloadScheduling",
        "TranslateStreamCloseWebsocketRequests",
        "UnauthenticatedHTTP2DOSMitigation",
        "UnknownVersionInteroperabilityProxy",
        "UserNamespacesHostNetworkSupport",
        "VolumeAttributesClass",
        "VolumeBindMountOptions",
        "VolumeLimitScaling",
        "WatchList",
        "WatchListCompression",
        "WorkloadWithJob",
    }
)
"""The gates that have their effect here."""
INTERNAL: Final = frozenset(
    {
        "APIServingWithRoutine",
        "AtomicFIFO",
        "CRDObservedGenerationTracking",
        "ClientsAllowCBOR",
        "ClientsPreferCBOR",
        "CloudControllerManagerWatchBasedRoutesReconciliation",
        "CloudControllerManagerWebhook",
        "ConcurrentWatchObjectDecode",
        "ContextualLogging",
        "EtcdRangeStream",
        "LocalStorageCapacityIsolationFSQuotaMonitoring",
        "WatchListClient",
        "WebhookRoundTripLoadBalancing",
    }
)
"""The gates whose values make no difference to clients of a kube-apiserver. Most choose between implementations of
the server or of its Go client, or belong to other programs whose packages a kube-apiserver contains.
CRDObservedGenerationTracking concerns fields that its strategy resets anyway.
"""
_FREE: Final = SWITCHABLE | INTERNAL
"""The gates that can be set to any value."""
_ALL: Final = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
_COMPONENT: Final = "kube"
_PRE_ALPHA: Final = "PREALPHA"


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


def known_gates() -> Mapping[str, FeatureGate]:
    """Return all gates that a kube-apiserver of the emulated release knows, by name, sorted. Do not modify it."""
    return _gates_of(*effective_version()[:2])


def _present_gates() -> Mapping[str, FeatureGate]:
    return _gates_of(*EffectiveVersion()[:2])


@cache
def _gates_of(release: tuple[int, int], oldest: tuple[int, int]) -> Mapping[str, FeatureGate]:
    return {gate.name: gate for gate in _stored_gates(release, oldest) if gate.stage != _PRE_ALPHA}


def _stored_gates(release: tuple[int, int], oldest: tuple[int, int]) -> Iterator[FeatureGate]:
    """Yield the gates of `feature_gates.txt` (from tools/generate_feature_gates.py) as they are in a release.

    A gate that does not exist in that release yet has the stage PREALPHA.

    Args:
        release: the major and the minor version.
        oldest: the oldest release of the components that the server coexists with, on which some defaults depend.
    """
    numbers = [f"{release[0]}.{release[1]}"]
    numbers.append(f"{numbers[0]}/{oldest[0]}.{oldest[1]}")
    for line in files(__package__).joinpath("feature_gates.txt").read_text("utf-8").splitlines():
        name, stage, default, locked, read, needs, history = line.split()
        needed = () if needs == "-" else tuple(needs.split(","))
        for former in history.split(","):
            number, *spec = former.split(":")
            if number in numbers:  # entries of both releases come after those of one
                stage, default, locked = spec
        yield FeatureGate(name, stage, default == "on", locked == "locked", read == "read", needed)


def enabled(name: str) -> bool:
    """Return whether a gate is enabled in this process. Raises KeyError for an unknown name.

    A gate that the emulated release does not have is disabled.
    """
    value = _changed.get(name)
    if value is not None:
        return value
    gate = known_gates().get(name)
    if gate is None and name not in _present_gates():
        raise KeyError(name)
    return gate is not None and gate.default


def gate_states() -> list[tuple[str, str, bool]]:
    """Return name, stage and state in this process of all known gates, sorted by name."""
    return [(gate.name, gate.stage, enabled(gate.name)) for gate in known_gates().values()]


def configure(settings: Sequence[str]) -> None:
    """Set the gates of this process. Gates that are not in `settings` have their defaults.

    Args:
        settings: the values of --feature-gates, such as `WatchList=false` or `kube:WatchList=false`.

    Raises:
        FeatureGateError: a setting is invalid, or it changes a gate that Tetrapod only implements with its default
            value. The gates of the process are then unchanged.
    """
    values = parse(settings)
    gates = known_gates()
    present = _present_gates()
    named = {setting.partition("=")[0].strip() for setting in _settings_of_component(settings)}
    fixed = [
        name
        for name, value in sorted(values.items())
        if gates[name].read and name not in _FREE and value != present[name].default
    ]
    if rejected := [name for name in fixed if name in named]:
        text = f"Tetrapod has only the default behaviour of {', '.join(rejected)} (docs/reference/flags.md)"
        raise FeatureGateError(f"--feature-gates: {text}")
    if fixed:
        switches = " and ".join(f"{switch}={_go(values[switch])}" for switch in _ALL if switch in named)
        log.warning("%s: Tetrapod has only the default behaviour of %s", switches, ", ".join(fixed))
    if former := _other_defaults():
        log.warning("--emulated-version: Tetrapod has the present behaviour of %s", ", ".join(former))
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


def _other_defaults() -> list[str]:
    """Return the gates, sorted, that had another default in the emulated release but are fixed in this server."""
    gates = known_gates()
    return [
        name
        for name, gate in _present_gates().items()
        if gate.read and name not in _FREE and gate.default != (name in gates and gates[name].default)
    ]


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
            errors.append(_unknown(name, value))
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
    """Return the settings without the prefix of a component, as `NAME=VALUE`.

    Upstream: component-base/cli/flag, ColonSeparatedMultimapStringString

    Args:
        settings: the values of --feature-gates. The prefix may only be `kube:`, in all settings or in none.

    Raises:
        FeatureGateError: another component is named, or only some settings have the prefix.
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
    """Return an error text for each enabled gate that needs a disabled one.

    Args:
        values: the gates that are set; the others have their default.
    """
    gates = known_gates()
    on = {name for name, gate in gates.items() if values.get(name, gate.default)}
    errors = []
    for name in sorted(on):
        off = [need for need in gates[name].needs if need not in on]
        if off:
            errors.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]")
    return errors


def _unknown(name: str, value: bool) -> str:
    """Return the error text for a gate that the emulated release does not have and --feature-gates sets to `value`."""
    if name not in _present_gates():
        return f"unrecognized feature gate: {name}"
    version = effective_version()
    emulated, oldest = ("{}.{}".format(*release) for release in version[:2])
    return (
        f"cannot set feature gate {name} to {_go(value)}, feature is PreAlpha at emulated version {emulated}, "
        f"min compatibility version {oldest}"
    )


def _go(value: bool) -> str:
    return str(value).lower()
