"""The type of the server's stores by resource, and the resources that subresources look up in it.

The stores are looked up at each request, because they are created after the subresources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from tetrapod.generic.registry.store import Store
from tetrapod.machinery.gvk import GroupResource

Stores: TypeAlias = Mapping[GroupResource, Store]

PODS: Final = GroupResource("", "pods")
NODES: Final = GroupResource("", "nodes")
SERVICES: Final = GroupResource("", "services")
SLICES: Final = GroupResource("discovery.k8s.io", "endpointslices")
SERVICE_ACCOUNTS: Final = GroupResource("", "serviceaccounts")
BUDGETS: Final = GroupResource("policy", "poddisruptionbudgets")
