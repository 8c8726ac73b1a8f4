"""Warnings about Endpoints."""

from __future__ import annotations

from tetrapod.core.v1.endpoints import warnings
from tetrapod.machinery.gvk import Object

_SUBSETS = [
    {"addresses": [{"ip": "10.0.0.1"}, {"ip": "2001:db8:0::1"}]},
    {"notReadyAddresses": [{"ip": "::ffff:1.2.3.4"}]},
]


def test_addresses_in_a_discouraged_notation_cause_warnings() -> None:
    endpoints: Object = {"metadata": {"name": "e"}, "subsets": _SUBSETS}
    assert warnings(endpoints, None) == [
        'subsets[0].addresses[1].ip: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format '
        '("2001:db8::1")',
        'subsets[1].notReadyAddresses[0].ip: non-standard IP address "::ffff:1.2.3.4" is invalid: use "1.2.3.4"',
    ]


def test_endpoints_of_the_controller_cause_no_warnings() -> None:
    labels = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert warnings({"metadata": {"name": "e", "labels": labels}, "subsets": _SUBSETS}, None) == []
