"""LimitPodHardAntiAffinityTopology and DenyServiceExternalIPs, both off by default.

Upstream: plugin/pkg/admission/{antiaffinity,network/denyserviceexternalips}.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.admission.pod_plugin import PodPlugin, spec_of
from tetrapod.generic.admission.interface import Attributes, Plugin, forbidden

_HOSTNAME: Final = "kubernetes.io/hostname"


class LimitPodHardAntiAffinityTopology(PodPlugin):
    """The plugin that rejects pods with a required anti-affinity term for another topologyKey than the hostname.

    The allowed key is `kubernetes.io/hostname`.
    """

    name = "LimitPodHardAntiAffinityTopology"
    operations = frozenset({"CREATE", "UPDATE"})

    async def validate(self, attributes: Attributes) -> None:
        anti_affinity = (spec_of(attributes).get("affinity") or {}).get("podAntiAffinity") or {}
        for term in anti_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ():
            if (key := term.get("topologyKey") or "") != _HOSTNAME:
                message = (
                    f"affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key "
                    f"{_HOSTNAME} is allowed"
                )
                raise forbidden(attributes, message)


class DenyServiceExternalIPs(Plugin):
    """The plugin that rejects services with an entry in spec.externalIPs that the stored service does not have.

    On create it rejects every external IP.
    """

    name = "DenyServiceExternalIPs"
    operations = frozenset({"CREATE", "UPDATE"})

    def handles(self, attributes: Attributes) -> bool:
        return (
            attributes.resource.resource == "services" and not attributes.resource.group and not attributes.subresource
        )

    async def validate(self, attributes: Attributes) -> None:
        existing = ((attributes.old_object or {}).get("spec") or {}).get("externalIPs") or ()
        if not set(spec_of(attributes).get("externalIPs") or ()) <= set(existing):
            raise forbidden(attributes, "Use of external IPs is denied by admission control")
