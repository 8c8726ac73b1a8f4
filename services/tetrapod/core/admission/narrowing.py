"""Plugins, off by default, that forbid what only administrators should use: LimitPodHardAntiAffinityTopology, DenyServiceExternalIPs.

Upstream: plugin/pkg/admission/{antiaffinity,network/denyserviceexternalips}.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.pod_plugin import PodPlugin, spec_of
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden

_HOSTNAME: Final = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(PodPlugin):
    """A pod keeps others off its node at most, never off a zone."""

    name = "LimitPodHardAntiAffinityTopology"
    operations = frozenset({"CREATE", "UPDATE"})

    async def validate(self, attributes: Attributes) -> None:
        apart = (spec_of(attributes).get("affinity") or {}).get("podAntiAffinity") or {}
        for term in apart.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            if (key := term.get("topologyKey") or "") != _HOSTNAME:
                said = f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {_HOSTNAME} is allowed"
                raise forbidden(attributes, said)


class DenyServiceExternalIPs(Plugin):
    """Those that a service has already may stay."""

    name = "DenyServiceExternalIPs"
    operations = frozenset({"CREATE", "UPDATE"})

    def handles(self, attributes: Attributes) -> bool:
        return attributes.resource.resource == "services" and not attributes.resource.group and not attributes.subresource

    async def validate(self, attributes: Attributes) -> None:
        before = ((attributes.old_object or {}).get("spec") or {}).get("externalIPs") or ()
        if not set(spec_of(attributes).get("externalIPs") or ()) <= set(before):
            raise forbidden(attributes, "Use of external IPs is denied by admission control")
