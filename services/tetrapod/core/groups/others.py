"""Resource definitions of groups with few kinds: certificates, coordination, events, flowcontrol, node and scheduling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tetrapod.core.defaults import cluster as defaults
from tetrapod.core.groups.events import new_events
from tetrapod.core.strategies.certificates import ApprovalStrategy, SigningRequestStrategy, SigningStatusStrategy
from tetrapod.core.strategies.pod_certificates import PodCertificateStatusStrategy, PodCertificateStrategy
from tetrapod.core.strategies.priority_classes import PriorityClassStore
from tetrapod.core.strategies.simple import KindStrategy, status_of
from tetrapod.core.tables import cluster as tables
from tetrapod.core.validation import flow_schemas, leases, pod_certificates, trust_bundles
from tetrapod.core.validation import node_kinds as classes
from tetrapod.core.warnings import others as warnings
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import WHOLE_METADATA
from tetrapod.machinery.gvk import Object

CERTIFICATES, FLOWCONTROL = "certificates.k8s.io", "flowcontrol.apiserver.k8s.io"


class LeaseStrategy(KindStrategy):
    """The strategy of Lease. The fields of coordinated leader election are dropped, because its feature gate is off, as upstream."""

    def prepare_for_create(self, ctx: Context, obj: Object) -> None:
        for key in ("strategy", "preferredHolder"):
            (obj.get("spec") or {}).pop(key, None)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        for key in ("strategy", "preferredHolder"):
            if (old.get("spec") or {}).get(key) is None:
                (new.get("spec") or {}).pop(key, None)


def _of_spec(key: str) -> Callable[[Object], str]:
    return lambda obj: (obj.get("spec") or {}).get(key) or ""


def definitions(authorizer: Authorizer | None, event_ttl: int = 3600) -> list[ResourceDefinition]:
    """Return the definitions of these groups.

    Args:
        authorizer: authorizes the signing of PodCertificateRequests; None skips the check.
        event_ttl: seconds until an event is deleted.
    """
    return [*_certificates(authorizer), *_coordination(event_ttl), *_flow_control()]


def _certificates(authorizer: Authorizer | None) -> list[ResourceDefinition]:
    request = SigningRequestStrategy()
    pod_request = PodCertificateStrategy(
        validate=pod_certificates.validate,
        whole_update=pod_certificates.validate_update,
        status=True,
        unconditional_update=False,
        fields={f"spec.{key}": _of_spec(key) for key in ("signerName", "podName", "nodeName")},
    )
    return [
        builtin(
            CERTIFICATES,
            "certificatesigningrequests",
            request,
            table=tables.CERTIFICATE_SIGNING_REQUESTS,
            subresources={"approval": ApprovalStrategy(request), "status": SigningStatusStrategy(request)},
        ),
        builtin(
            CERTIFICATES,
            "clustertrustbundles",
            KindStrategy(
                validate=trust_bundles.validate,
                whole_update=trust_bundles.validate_update,
                metadata="late",
                unconditional_update=False,
                fields={"spec.signerName": lambda o: (o.get("spec") or {}).get("signerName") or ""},
            ),
            table=tables.CLUSTER_TRUST_BUNDLES,
        ),
        builtin(
            CERTIFICATES,
            "podcertificaterequests",
            pod_request,
            table=tables.POD_CERTIFICATE_REQUESTS,
            subresources={"status": PodCertificateStatusStrategy(pod_request, authorizer)},
        ),
    ]


def _coordination(event_ttl: int) -> list[ResourceDefinition]:
    lease = LeaseStrategy(validate=leases.validate, create_on_update=True, unconditional_update=False, metadata="plain")
    runtime = KindStrategy(
        validate=classes.validate_runtime,
        whole_update=classes.validate_runtime_update,
        revalidates_generate_name=True,
        warnings=warnings.runtime_class,
        create_on_update=True,
        unconditional_update=False,
        metadata="plain",
    )
    priority = KindStrategy(
        default=defaults.default_priority_class,
        validate=classes.validate_priority,
        whole_update=classes.validate_priority_update,
        generation=["value"],
    )
    return [
        builtin("coordination.k8s.io", "leases", lease, table=tables.LEASES),
        new_events(event_ttl),
        builtin("node.k8s.io", "runtimeclasses", runtime, table=tables.RUNTIME_CLASSES),
        replace(builtin("scheduling.k8s.io", "priorityclasses", priority, table=tables.PRIORITY_CLASSES), store=PriorityClassStore),
    ]


def _flow_control() -> list[ResourceDefinition]:
    schema = KindStrategy(
        default=defaults.default_flow_schema,
        validate=flow_schemas.validate,
        status=True,
        generation=["spec"],
        revalidates_generate_name=True,
    )
    level = KindStrategy(
        default=defaults.default_priority_level,
        validate=flow_schemas.validate_level,
        status=True,
        generation=["spec"],
        revalidates_generate_name=True,
    )
    schema_status = status_of(schema, keep_metadata=WHOLE_METADATA, validate=flow_schemas.validate_status)
    level_status = status_of(level, keep_metadata=WHOLE_METADATA, validate=flow_schemas.validate_status)
    return [
        builtin(FLOWCONTROL, "flowschemas", schema, table=tables.FLOW_SCHEMAS, subresources={"status": schema_status}),
        builtin(FLOWCONTROL, "prioritylevelconfigurations", level, table=tables.PRIORITY_LEVELS, subresources={"status": level_status}),
    ]
