"""The definition of NetworkPolicies, with their strategy, defaults, validation, warnings and table columns.

Upstream: pkg/registry/networking/networkpolicy/strategy.go and pkg/apis/networking/validation.
"""

from __future__ import annotations

from typing import Any, Final

from tetrapod.core.cells import AGE, NAME, age, name_of, selector_text, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import network, port_number_or_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.generic.registry.hand_written import HandWritten
from tetrapod.machinery import field
from tetrapod.machinery.addresses import cidr_warnings
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.ip_addresses import parse_cidr_sloppy
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.labels import validate_label_selector
from tetrapod.machinery.table import Column, TableConvertor

_PROTOCOLS: Final = ["TCP", "UDP", "SCTP"]
_TYPES: Final = ["Ingress", "Egress"]

TABLE: Final = TableConvertor(
    (NAME, Column("Pod-Selector"), AGE),
    lambda obj: [name_of(obj), selector_text(spec_of(obj).get("podSelector")), age(obj)],
)


class NetworkPolicyStrategy(KindStrategy):
    """The strategy of NetworkPolicies.

    As upstream, metadata.generation also changes if an update replaces an empty field by a missing one or the reverse.
    """

    distinguishes_empty = True


_FORM: Final = HandWritten(
    "spec.podSelector",
    "spec.ingress[].ports",
    "spec.ingress[].from[].podSelector",
    "spec.ingress[].from[].namespaceSelector",
    "spec.ingress[].from[].ipBlock",
    "spec.ingress[].from[]!",
    "spec.egress[].ports",
    "spec.egress[].to[].podSelector",
    "spec.egress[].to[].namespaceSelector",
    "spec.egress[].to[].ipBlock",
    "spec.egress[].to[]!",
    "spec.policyTypes",
)


def definition() -> ResourceDefinition:
    """Return the resource definition of NetworkPolicies: versions, strategy, subresources and columns."""
    strategy = NetworkPolicyStrategy(
        hand_written=_FORM,
        defaults=set_defaults,
        validator=validate,
        warnings=warnings,
        whole_update_validator=validate_update,
        generation=("spec",),
    )
    return builtin("networking.k8s.io", "networkpolicies", strategy, table=TABLE)


def set_defaults(obj: Object) -> None:
    """Set the defaults of a NetworkPolicy in place.

    The protocol of ports is TCP. policyTypes is Ingress, and also Egress if there are egress rules.
    """
    spec = obj.setdefault("spec", {})
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            if port.get("protocol") is None:
                port["protocol"] = "TCP"
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def validate(obj: Object) -> list[FieldError]:
    """Validate a new NetworkPolicy: selectors, ports and CIDRs are valid.

    There are at most two policyTypes, which are Ingress or Egress.
    """
    return _spec(obj.get("spec") or {}, [])


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated NetworkPolicy as a new one, but accept CIDRs in a legacy format that the stored one has."""
    return _spec(new.get("spec") or {}, _networks(old.get("spec") or {}))


def _networks(spec: Object) -> list[str]:
    """Return every CIDR in the ipBlocks of a policy's spec, exceptions included."""
    cidrs: list[str] = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for rule in spec.get(direction) or ():
            for peer in rule.get(peers) or ():
                if (block := peer.get("ipBlock")) is not None:
                    cidrs += [block.get("cidr") or "", *(block.get("except") or ())]
    return cidrs


def _spec(spec: Object, known: list[str]) -> list[FieldError]:
    errors = validate_label_selector(spec.get("podSelector") or {}, "spec.podSelector")
    late: list[FieldError] = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate(spec.get(direction) or ()):
            path = f"spec.{direction}[{i}]"
            for j, port in enumerate(rule.get("ports") or ()):
                errors += _port(port, f"{path}.ports[{j}]")
            for j, peer in enumerate(rule.get(peers) or ()):
                errors += _peer(peer, f"{path}.{peers}[{j}]", known)
                if peer.get("ipBlock") is not None and not peer["ipBlock"].get("cidr"):
                    late.append(field.required(f"{path}.{peers}[{j}].ipBlock.cidr"))
    return errors + _policy_types(spec.get("policyTypes") or []) + late


def _policy_types(types: list[str]) -> list[FieldError]:
    if len(types) > len(_TYPES):
        return [field.invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    return [
        field.not_supported(f"spec.policyTypes[{i}]", kind, _TYPES)
        for i, kind in enumerate(types)
        if kind not in _TYPES
    ]


def _port(port: Object, path: str) -> list[FieldError]:
    number: Any = port.get("port")
    protocol, last = port.get("protocol"), port.get("endPort")
    errors: list[FieldError] = []
    if protocol is not None and protocol not in _PROTOCOLS:
        errors.append(field.not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if number is None:
        if last is not None:
            errors.append(field.invalid(f"{path}.endPort", last, "may not be specified when `port` is not specified"))
        return errors
    if isinstance(number, str):
        if last is not None:
            errors.append(field.invalid(f"{path}.endPort", last, "may not be specified when `port` is non-numeric"))
        return errors + port_number_or_name(number, f"{path}.port")
    errors += port_number_or_name(number, f"{path}.port")
    if last is not None:
        if last < number:
            errors.append(field.invalid(f"{path}.endPort", last, "must be greater than or equal to `port`"))
        if not 1 <= last <= 65535:
            errors += port_number_or_name(last, f"{path}.endPort")
    return errors


def _peer(peer: Object, path: str, known: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    set_fields = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    for key in set_fields:
        errors += (
            _block(peer[key], f"{path}.{key}", known)
            if key == "ipBlock"
            else validate_label_selector(peer[key], f"{path}.{key}")
        )
    if not set_fields:
        errors.append(field.required(path, "must specify a peer"))
    elif len(set_fields) > 1 and "ipBlock" in set_fields:
        errors.append(field.forbidden(path, "may not specify both ipBlock and another peer"))
    return errors


def _block(block: Object, path: str, known: list[str]) -> list[FieldError]:
    cidr = block.get("cidr") or ""
    if not cidr:
        return []  # _spec reports it last, with the other required fields that the schema declares
    errors = network(cidr, f"{path}.cidr", known)
    whole = parse_cidr_sloppy(cidr)
    if whole is None:
        return errors
    for i, part in enumerate(block.get("except") or ()):
        at = f"{path}.except[{i}]"
        errors += network(part, at, known)
        parsed_part = parse_cidr_sloppy(part)
        if parsed_part is None:
            continue
        outer, smaller = whole[1], parsed_part[1]
        if (
            smaller.version != outer.version
            or smaller.network_address not in outer
            or outer.prefixlen >= smaller.prefixlen
        ):
            errors.append(field.invalid(at, part, "must be a strict subset of `cidr`"))
    return errors


def warnings(obj: Object, old: Object | None) -> list[str]:
    """Return a warning for each CIDR of a NetworkPolicy in a legacy format or not in canonical form.

    The stored object is not used.
    """
    warnings: list[str] = []
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for i, rule in enumerate((obj.get("spec") or {}).get(direction) or ()):
            for j, peer in enumerate(rule.get(peers) or ()):
                block, path = peer.get("ipBlock") or {}, f"spec.{direction}[{i}].{peers}[{j}].ipBlock"
                warnings += cidr_warnings(f"{path}.cidr", block.get("cidr") or "")
                warnings += [
                    text
                    for k, cidr in enumerate(block.get("except") or ())
                    for text in cidr_warnings(f"{path}.except[{k}]", cidr)
                ]
    return warnings
