"""The declared rules for the scheduling of a group of pods, which Workloads, PodGroups and Jobs share.

Upstream: k8s.io/api/scheduling/v1beta1/types.go and v1alpha3/types.go.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.validation.declared import Field, Type, label_key, long_name, short_name

MOST_CLAIMS: Final = 4
"""The most resource claims of a group."""
NAME: Final = Field((short_name,), required=True)
_OBJECT: Final = Field(pointer=True)
_CLAIM_NAME: Final = Field((long_name,), pointer=True)
_EITHER_DISRUPTION: Final = Type({"single": _OBJECT, "all": _OBJECT}, union=("single", "all"))
_CONSTRAINTS: Final = Type(
    {"topology": Field(items=Type({"key": Field((label_key,), required=True)}), max_items=1)},
)
_CLAIM: Final = Type(
    {"name": NAME, "resourceClaimName": _CLAIM_NAME, "resourceClaimTemplateName": _CLAIM_NAME},
    union=("resourceClaimName", "resourceClaimTemplateName"),
)
DISRUPTION: Final = Field(type=_EITHER_DISRUPTION, immutable=True)
CONSTRAINTS: Final = Field(type=_CONSTRAINTS, immutable=True)
RESOURCE_CLAIMS: Final = Field(items=_CLAIM, key="name", immutable=True, max_items=MOST_CLAIMS)
