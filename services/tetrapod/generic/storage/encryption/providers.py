"""Builds transformers from a configuration: which providers are used for which resource, in which order.

Upstream: staging/src/k8s.io/apiserver/pkg/server/options/encryptionconfig/config.go,
getTransformerOverridesAndKMSPluginProbes, prefixTransformersAndProbes and transformerFromOverrides
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.storage.config import UNUSUAL_PLACES
from tetrapod.generic.storage.encryption.ciphers import AesCbc, AesGcm, Secretbox
from tetrapod.generic.storage.encryption.kms.envelope import Envelope
from tetrapod.generic.storage.encryption.kms.probe import KmsProbe
from tetrapod.generic.storage.encryption.kms.service import KmsService
from tetrapod.generic.storage.encryption.kms_v1.envelope import KmsV1Envelope
from tetrapod.generic.storage.encryption.kms_v1.probe import KmsV1Probe
from tetrapod.generic.storage.encryption.kms_v1.service import KmsV1Service
from tetrapod.generic.storage.encryption.transformer import (
    Identity,
    Prefixed,
    PrefixTransformer,
    Transformer,
    WritesPlain,
)
from tetrapod.generic.storage.encryption.validation import EVERYTHING, parse_resource, secret_of
from tetrapod.machinery.golang.durations import parse_duration
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource, Object

log = logging.getLogger(__name__)

_KMS_V1_GATE: Final = "KMSv1"
_KMS_V1_DEPRECATED: Final = (
    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead."
)
KMS_V1_DISABLED: Final = f"{_KMS_V1_DEPRECATED}  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."


class _Keyed(NamedTuple):
    """A provider with named keys (aescbc, aesgcm, secretbox).

    A stored value begins with the provider's prefix, then the prefix of the key that encrypted it.

    Attributes:
        prefix: the prefix of the provider, such as "k8s:enc:aescbc:v1:".
        ciphers: the cipher of each key, with the key's prefix: its name and a colon.
        unmatched: the error text for a value whose key name is not configured.
    """

    prefix: bytes
    ciphers: Sequence[Prefixed]
    unmatched: str


_Provider = _Keyed | Prefixed


_CIPHERS: Final[Mapping[str, tuple[Callable[[bytes], Transformer], str]]] = {
    "aescbc": (AesCbc, "AES"),
    "aesgcm": (AesGcm, "AES"),
    "secretbox": (Secretbox, "Secretbox"),
}
_RANGES: Final = UNUSUAL_PLACES["ranges"]
"""The allocated node ports, which upstream's storage of Services keeps without transformers. A kube-apiserver over the
same etcd could not read them otherwise.
"""


class Providers:
    """The encryption providers of one EncryptionConfiguration, by resource.

    `probes` are those of its KMS plugins, and `timeouts` is the sum of the timeouts of their health checks in seconds.
    """

    def __init__(self, config: Object) -> None:
        """Build the providers. No connection is opened yet.

        Args:
            config: a valid EncryptionConfiguration with defaults.

        Raises:
            ValueError: KMS v1 is configured without its feature gate, or an earlier entry covers a resource; with
                upstream's text.
        """
        self.probes: list[KmsProbe | KmsV1Probe] = []
        self.timeouts = 0.0
        self._by_resource: dict[GroupResource, list[_Provider]] = {}
        self._transformers: dict[GroupResource, Transformer] = {}
        try:
            for entry in config["resources"]:
                self._add(entry)
        except ValueError as error:
            raise ValueError(f"error while building transformers: {error}") from None

    def polled_probes(self) -> list[KmsProbe]:
        """Return the probes of KMS v2 plugins, whose key IDs must be polled."""
        return [probe for probe in self.probes if isinstance(probe, KmsProbe)]

    def transformer(self, resource: GroupResource) -> Transformer:
        """Return the transformer of a resource, always the same one.

        It consists of the providers for the resource's name or else for its group (`*.group`) or else for `*.*`.
        Without any, values are stored unencrypted, and so are the allocated node ports in any case.
        """
        transformer = self._transformers.get(resource)
        if transformer is None:
            transformer = self._build(resource)
            if resource == _RANGES:
                transformer = WritesPlain(transformer)
            self._transformers[resource] = transformer
        return transformer

    async def close(self) -> None:
        """Close the connections to the plugins."""
        for probe in self.probes:
            await probe.service.close()

    def _build(self, resource: GroupResource) -> Transformer:
        for pattern in (resource, GroupResource(resource.group, "*"), EVERYTHING):
            if (providers := self._by_resource.get(pattern)) is not None:
                chosen = [_transformer_of(str(resource), provider) for provider in providers]
                return PrefixTransformer(str(resource), "no matching prefix found", chosen)
        return Identity()

    def _add(self, entry: Object) -> None:
        providers = [self._provider(provider) for provider in entry["providers"]]
        for name in entry["resources"]:
            resource = parse_resource(name)
            for masking in (GroupResource(resource.group, "*"), EVERYTHING):
                if masking in self._by_resource:
                    raise ValueError(
                        f"resource {go_quote(_display_name(resource))} is masked by earlier rule "
                        f"{go_quote(_display_name(masking))}"
                    )
            self._by_resource.setdefault(resource, []).extend(providers)

    def _provider(self, provider: Object) -> _Provider:
        for name, (cipher, description) in _CIPHERS.items():
            if (options := provider.get(name)) is not None:
                ciphers = [Prefixed(f"{key['name']}:".encode(), cipher(secret_of(key))) for key in options["keys"]]
                return _Keyed(
                    f"k8s:enc:{name}:v1:".encode(),
                    ciphers,
                    f"no matching key was found for the provided {description} transformer",
                )
        if (kms := provider.get("kms")) is not None:
            return self._kms(kms)
        return Prefixed(b"", Identity())

    def _kms(self, kms: Object) -> Prefixed:
        timeout = parse_duration(kms["timeout"])
        if kms["apiVersion"] == "v1":
            return self._kms_v1(kms, timeout)
        probe = KmsProbe(kms["name"], KmsService(kms["name"], kms["endpoint"], timeout))
        self.probes.append(probe)
        self.timeouts += timeout
        return Prefixed(f"k8s:enc:kms:v2:{kms['name']}:".encode(), Envelope(probe))

    def _kms_v1(self, kms: Object, timeout: float) -> Prefixed:
        if not feature_gates.enabled(_KMS_V1_GATE):
            raise ValueError(KMS_V1_DISABLED)
        log.info(_KMS_V1_DEPRECATED)
        service = KmsV1Service(kms["endpoint"], timeout)
        self.probes.append(KmsV1Probe(kms["name"], service))
        self.timeouts += 2 * timeout  # the health check makes two calls
        return Prefixed(f"k8s:enc:kms:v1:{kms['name']}:".encode(), KmsV1Envelope(service, kms["cachesize"]))


def _transformer_of(resource: str, provider: _Provider) -> Prefixed:
    """Return the transformer of a provider, with the prefix of the values that it encrypts.

    Its metrics are labelled with `resource`.
    """
    if isinstance(provider, Prefixed):
        return provider
    return Prefixed(provider.prefix, PrefixTransformer(resource, provider.unmatched, provider.ciphers))


def _display_name(resource: GroupResource) -> str:
    return "*." if resource == GroupResource("", "*") else str(resource)
