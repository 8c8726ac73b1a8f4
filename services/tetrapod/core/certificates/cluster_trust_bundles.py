"""The definition of ClusterTrustBundles, with their validation and table columns.

Upstream: pkg/registry/certificates/clustertrustbundle/strategy.go and pkg/apis/certificates/validation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.core.cells import NAME, name_of, spec_of
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.validation.names import immutable
from tetrapod.core.validation.signer_names import signer_name
from tetrapod.generic.registry.builtin import builtin
from tetrapod.generic.registry.definition import ResourceDefinition
from tetrapod.machinery import field
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.pem import Block, blocks
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.metadata import validate_kube_object_meta
from tetrapod.machinery.names import name_is_dns_subdomain
from tetrapod.machinery.table import Column, TableConvertor

_PATH: Final = "spec.trustBundle"
_LARGEST: Final = 1024 * 1024

TABLE: Final = TableConvertor(
    (NAME, Column("SignerName")),
    lambda obj: [name_of(obj), spec_of(obj).get("signerName") or "<none>"],
)


def definition() -> ResourceDefinition:
    """Return the resource definition of ClusterTrustBundles: versions, strategy, subresources and columns."""
    strategy = KindStrategy(
        validator=validate,
        whole_update_validator=validate_update,
        metadata_rules="late",
        allow_unconditional_update=False,
        fields={"spec.signerName": lambda o: (o.get("spec") or {}).get("signerName") or ""},
    )
    return builtin(
        "certificates.k8s.io",
        "clustertrustbundles",
        strategy,
        versions=("v1", "v1beta1"),
        table=TABLE,
    )


def name_texts(name: str, prefix: bool, signer: str) -> list[str]:
    """Return the error texts for the name of a bundle.

    With a signer `example.com/a`, it must start with `example.com:a:`; without one it must not contain a colon.

    Args:
        prefix: whether the name is metadata.generateName.
        signer: spec.signerName, or "".
    """
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return name_is_dns_subdomain(name, prefix)
    first = signer.replace("/", ":") + ":"
    if not name.startswith(first):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {first}"]
    return name_is_dns_subdomain(name.removeprefix(first), prefix)


def validate(obj: Object) -> list[FieldError]:
    """Validate a new ClusterTrustBundle.

    Its name begins with that of the signer, if there is one, and the signer name is valid. trustBundle has at least one
    PEM certificate; all are CAs, and none occurs twice.
    """
    return _metadata_and_signer(obj) + _anchors((obj.get("spec") or {}).get("trustBundle") or "")


def _metadata_and_signer(obj: Object) -> list[FieldError]:
    signer = (obj.get("spec") or {}).get("signerName") or ""
    errors = validate_kube_object_meta(obj["metadata"], False, lambda name, prefix: name_texts(name, prefix, signer))
    return errors + (signer_name(signer, "spec.signerName") if signer else [])


def validate_update(new: Object, old: Object) -> list[FieldError]:
    """Validate an updated bundle as a new one; its signer is immutable.

    An unchanged trustBundle is not parsed again.
    """
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = _metadata_and_signer(new)
    if spec.get("trustBundle") != old_spec.get("trustBundle"):
        errors += _anchors(spec.get("trustBundle") or "")
    return errors + immutable(spec.get("signerName") or "", old_spec.get("signerName") or "", "spec.signerName")


def _anchors(bundle: str) -> list[FieldError]:
    if len(bundle) > _LARGEST:
        return [field.too_long(_PATH, _LARGEST)]
    pem_blocks = blocks(bundle.encode())
    texts = [f"entry {i} {error}" for i, block in enumerate(pem_blocks) if (error := _block_error(block))]
    if texts:
        return _errors(texts)
    if not pem_blocks:
        return _errors(["at least one trust anchor must be provided"])
    indices: dict[bytes, list[int]] = {}
    for i, block in enumerate(pem_blocks):
        indices.setdefault(block.content, []).append(i)
    listed = (" ".join(map(str, same)) for same in indices.values() if len(same) > 1)
    return _errors([f"duplicate trust anchor (indices [{numbers}])" for numbers in listed])


def _errors(texts: list[str]) -> list[FieldError]:
    return [field.invalid(_PATH, "<value omitted>", text) for text in texts]


def _block_error(block: Block) -> str:
    from cryptography import x509

    if block.type != "CERTIFICATE":
        return f"has bad block type: {block.type}"
    if block.headers:
        return "has PEM block headers"
    try:
        certificate = x509.load_der_x509_certificate(block.content)
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return "does not have the CA bit set"
    except ValueError:
        return "does not parse as X.509"
    return "" if constraints.ca else "does not have the CA bit set"
