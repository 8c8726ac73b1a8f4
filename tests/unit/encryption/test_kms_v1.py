"""KMS v1: the format of values, the cache of keys, the version of the plugin, the health check, the feature gate."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.kms_v1 import KmsV1Plugin
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.storage.encryption.ciphers import AesCbc
from tetrapod.generic.storage.encryption.kms_v1.envelope import KmsV1Envelope
from tetrapod.generic.storage.encryption.kms_v1.probe import KmsV1Probe
from tetrapod.generic.storage.encryption.kms_v1.service import KmsV1Service
from tetrapod.generic.storage.encryption.providers import KMS_V1_DISABLED, Providers
from tetrapod.generic.storage.encryption.transformer import TransformError

DISABLED = "rpc error: code = FailedPrecondition desc = failed precondition - key disabled"


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[KmsV1Plugin]:
    plugin = KmsV1Plugin(tmp_path)
    plugin.start()
    yield plugin
    plugin.stop()


@pytest.fixture
async def service(plugin: KmsV1Plugin) -> AsyncIterator[KmsV1Service]:
    service = KmsV1Service(plugin.endpoint, 3.0)
    yield service
    await service.close()


async def test_each_value_has_its_own_key_and_known_keys_are_cached(plugin: KmsV1Plugin, service: KmsV1Service) -> None:
    envelope = KmsV1Envelope(service, 2)
    values = [await envelope.to_storage(text, b"/key") for text in (b"a", b"b", b"c")]
    assert plugin.calls == {"Version": 1, "Encrypt": 3, "Decrypt": 0}
    assert await envelope.from_storage(values[2], b"/key") == (b"c", False)
    assert plugin.calls["Decrypt"] == 0
    assert await envelope.from_storage(values[0], b"/key") == (b"a", False)
    assert plugin.calls["Decrypt"] == 1
    with pytest.raises(TransformError, match="message authentication failed"):
        await envelope.from_storage(values[0], b"/other")


async def test_a_negative_cache_size_disables_the_cache(plugin: KmsV1Plugin, service: KmsV1Service) -> None:
    envelope = KmsV1Envelope(service, -1)
    value = await envelope.to_storage(b"a", b"/key")
    for _ in range(2):
        assert await envelope.from_storage(value, b"/key") == (b"a", False)
    assert plugin.calls["Decrypt"] == 2


async def test_values_written_with_cbc_are_read_and_stale(service: KmsV1Service) -> None:
    key = bytes(range(32))
    sealed_key = await service.encrypt(key)
    value = len(sealed_key).to_bytes(2, "big") + sealed_key + await AesCbc(key).to_storage(b"old", b"/key")
    assert await KmsV1Envelope(service, 10).from_storage(value, b"/key") == (b"old", True)


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\5abcd"])
async def test_a_truncated_value_is_rejected(service: KmsV1Service, value: bytes) -> None:
    with pytest.raises(TransformError) as caught:
        await KmsV1Envelope(service, 10).from_storage(value, b"/key")
    assert str(caught.value) == (
        "invalid data encountered by envelope transformer: failed to read uint16 length prefixed data"
    )


async def test_a_plugin_of_another_version_is_rejected(plugin: KmsV1Plugin, service: KmsV1Service) -> None:
    plugin.version = "v2"
    with pytest.raises(TransformError) as caught:
        await service.encrypt(b"key")
    assert str(caught.value) == "KMS provider api version v2 is not supported, only v1beta1 is supported now"


@pytest.mark.parametrize("section", ["encrypt", "decrypt"])
async def test_the_health_check_names_the_failing_section(
    plugin: KmsV1Plugin, service: KmsV1Service, section: str
) -> None:
    plugin.encrypts, plugin.decrypts = section != "encrypt", section != "decrypt"
    probe = KmsV1Probe("vault", service)
    with pytest.raises(TransformError) as caught:
        await probe.check()
    assert str(caught.value) == (
        f"failed to perform {section} section of the healthz check for KMS Provider vault, error: {DISABLED}"
    )
    calls = dict(plugin.calls)
    with pytest.raises(TransformError) as caught:
        await probe.check()
    assert str(caught.value) == DISABLED
    assert plugin.calls == calls


async def test_a_healthy_result_is_cached(plugin: KmsV1Plugin, service: KmsV1Service) -> None:
    probe = KmsV1Probe("vault", service)
    await probe.check()
    await probe.check()
    assert plugin.calls == {"Version": 1, "Encrypt": 1, "Decrypt": 1}


async def test_kms_v1_needs_its_feature_gate(plugin: KmsV1Plugin) -> None:
    kms = {"apiVersion": "v1", "name": "vault", "endpoint": plugin.endpoint, "timeout": "3s", "cachesize": 1000}
    config = {"resources": [{"resources": ["secrets"], "providers": [{"kms": kms}]}]}
    with pytest.raises(ValueError) as caught:
        Providers(config)
    assert str(caught.value) == f"error while building transformers: {KMS_V1_DISABLED}"
    feature_gates.configure(["KMSv1=true"])
    try:
        providers = Providers(config)
        assert [probe.name for probe in providers.probes] == ["vault"]
        assert providers.polled_probes() == []
        assert providers.timeouts == 6.0
        await providers.close()
    finally:
        feature_gates.configure([])
