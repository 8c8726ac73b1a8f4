"""Resource definitions of groups with few kinds: certificates, coordination, events, flowcontrol, node and scheduling."""

from __future__ import annotations

from collections.abc import Callable

from tetrapod.core.defaults import cluster as defaults
from tetrapod.core.groups.events import new_events
from tetrapod.core.kind_strategy import KindStrategy, status_strategy
from tetrapod.core.strategies.certificates import ApprovalStrategy, SigningRequestStrategy, SigningStatusStrategy
from tetrapod.core.strategies.pod_certificates import PodCertificateStatusStrategy, PodCertificateStrategy
from tetrapod.core.tables import cluster as tables
from tetrapod.core.validation import flow_schemas, pod_certificates, trust_bundles
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import WHOLE_METADATA
from tetrapod.machinery.gvk import Object


def _of_spec(key: str) -> Callable[[Object], str]:
    return lambda obj: (obj.get("spec") or {}).get(key) or ""


def signing_requests() -> ResourceDefinition:
    """Return the definition of CertificateSigningRequests."""
    strategy = SigningRequestStrategy()
    return builtin(
        "certificates.k8s.io",
        "certificatesigningrequests",
        strategy,
        table=tables.CERTIFICATE_SIGNING_REQUESTS,
        subresources={"approval": ApprovalStrategy(strategy), "status": SigningStatusStrategy(strategy)},
    )


def cluster_trust_bundles() -> ResourceDefinition:
    """Return the definition of ClusterTrustBundles."""
    strategy = KindStrategy(
        validate=trust_bundles.validate,
        whole_update=trust_bundles.validate_update,
        metadata="late",
        unconditional_update=False,
        fields={"spec.signerName": lambda o: (o.get("spec") or {}).get("signerName") or ""},
    )
    return builtin("certificates.k8s.io", "clustertrustbundles", strategy, table=tables.CLUSTER_TRUST_BUNDLES)


def pod_certificate_requests(authorizer: Authorizer | None) -> ResourceDefinition:
    """Return the definition of PodCertificateRequests.

    Args:
        authorizer: authorizes signers to change the status; None skips the check.
    """
    strategy = PodCertificateStrategy(
        validate=pod_certificates.validate,
        whole_update=pod_certificates.validate_update,
        status=True,
        unconditional_update=False,
        fields={f"spec.{key}": _of_spec(key) for key in ("signerName", "podName", "nodeName")},
    )
    return builtin(
        "certificates.k8s.io",
        "podcertificaterequests",
        strategy,
        table=tables.POD_CERTIFICATE_REQUESTS,
        subresources={"status": PodCertificateStatusStrategy(strategy, authorizer)},
    )


def flow_schema_definition() -> ResourceDefinition:
    """Return the definition of FlowSchemas."""
    strategy = KindStrategy(
        default=defaults.default_flow_schema,
        validate=flow_schemas.validate,
        status=True,
        generation=["spec"],
        revalidates_generate_name=True,
    )
    status = status_strategy(strategy, keep_metadata=WHOLE_METADATA, validate=flow_schemas.validate_status)
    return builtin("flowcontrol.apiserver.k8s.io", "flowschemas", strategy, table=tables.FLOW_SCHEMAS, subresources={"status": status})


def priority_levels() -> ResourceDefinition:
    """Return the definition of PriorityLevelConfigurations."""
    strategy = KindStrategy(
        default=defaults.default_priority_level,
        validate=flow_schemas.validate_level,
        status=True,
        generation=["spec"],
        revalidates_generate_name=True,
    )
    status = status_strategy(strategy, keep_metadata=WHOLE_METADATA, validate=flow_schemas.validate_status)
    return builtin(
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        strategy,
        table=tables.PRIORITY_LEVELS,
        subresources={"status": status},
    )


def certificate_definitions(authorizer: Authorizer | None) -> list[ResourceDefinition]:
    """Return the definitions of the group.

    Args:
        authorizer: authorizes signers to change the status of PodCertificateRequests; None skips the check.
    """
    return [signing_requests(), cluster_trust_bundles(), pod_certificate_requests(authorizer)]


def event_definitions(ttl: int) -> list[ResourceDefinition]:
    """Return the definitions of the group. Those of core/v1 are listed there.

    Args:
        ttl: seconds until an event is deleted.
    """
    return [new_events(ttl)]


def flow_control_definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [flow_schema_definition(), priority_levels()]
