"""Resource definitions of groups with few kinds: certificates, coordination, events, flowcontrol, node and scheduling."""

from __future__ import annotations

from tetrapod.core.defaults import cluster as defaults
from tetrapod.core.kind_strategy import KindStrategy, status_strategy
from tetrapod.core.tables import cluster as tables
from tetrapod.core.validation import flow_schemas
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.status import WHOLE_METADATA


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


def flow_control_definitions() -> list[ResourceDefinition]:
    """Return the definitions of the group."""
    return [flow_schema_definition(), priority_levels()]
