"""The resource definition of nodes, their warnings, and `nodes/proxy`.

Upstream: pkg/registry/core/node/storage/storage.go, pkg/api/node.
"""

from __future__ import annotations

from tetrapod.core.subresources.locations import check_host, endpoint_of, kubelet_of, split_name
from tetrapod.core.subresources.proxy import ProxyRest
from tetrapod.core.subresources.stores import NODES
from tetrapod.core.v1.nodes import validation
from tetrapod.core.v1.nodes.defaults import set_defaults
from tetrapod.core.v1.nodes.strategy import NodeStrategy, node_status_strategy
from tetrapod.core.v1.nodes.table import TABLE
from tetrapod.generic.proxy import Endpoint
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.rest import Rest
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.addresses import cidr_warnings
from tetrapod.machinery.gvk import Object


def definition(proxy: Rest | Strategy) -> ResourceDefinition:
    """Return the resource definition of nodes: versions, strategy, subresources and columns.

    Args:
        proxy: the implementation of `nodes/proxy`.
    """
    strategy = NodeStrategy(
        defaults=set_defaults,
        has_status=True,
        validator=validation.validate,
        whole_update_validator=validation.validate_update,
        warnings=warnings,
        revalidates_generate_name="before finalizers",
        fields={"spec.unschedulable": lambda o: "true" if (o.get("spec") or {}).get("unschedulable") else "false"},
    )
    return builtin(
        "",
        "nodes",
        strategy,
        storage_prefix="minions",
        table=TABLE,
        subresources={"proxy": proxy, "status": node_status_strategy(strategy, validation.validate_status)},
    )


def warnings(node: Object, old: Object | None) -> list[str]:
    """Return warnings about spec.externalID, which is deprecated, and about podCIDRs that are not in canonical form.

    Args:
        old: not used.
    """
    spec = node.get("spec") or {}
    out = ["spec.externalID: this field is deprecated, and is unused by Kubernetes"] if spec.get("externalID") else []
    for i, cidr in enumerate(spec.get("podCIDRs") or ()):
        out += cidr_warnings(f"spec.podCIDRs[{i}]", cidr)
    return out


class NodeProxyRest(ProxyRest):
    """The subresource `nodes/proxy`, which forwards requests to the kubelet or to another port of the node.

    Upstream: pkg/registry/core/node/strategy.go, ResourceLocation.
    """

    async def locate(self, ctx: Context, name: str) -> Endpoint:
        scheme, bare, port = split_name(name, "node")
        kubelet = await kubelet_of(self._stores, self._backends, bare, NODES)
        await check_host(kubelet.host)
        return kubelet if port in ("", str(kubelet.port)) else endpoint_of(kubelet.host, port, scheme)
