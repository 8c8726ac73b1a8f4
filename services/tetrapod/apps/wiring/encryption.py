"""Encryption at rest. Its modules are imported only if --encryption-provider-config names a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tetrapod.apps.options.etcd import EtcdFlags
from tetrapod.generic.lifecycle import Lifecycle

if TYPE_CHECKING:
    from tetrapod.generic.storage.encryption.encryption import Encryption


def build_encryption(flags: EtcdFlags, lifecycle: Lifecycle) -> Encryption | None:
    """Return the encryption of stored objects, or None if none is configured.

    Raises:
        ValueError: the file is invalid; the text is upstream's.
    """
    if not flags.encryption_provider_config:
        if flags.encryption_provider_config_automatic_reload:
            raise ValueError(
                "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
            )
        return None
    from tetrapod.generic.storage.encryption.encryption import Encryption

    encryption = Encryption(flags.encryption_provider_config, reload=flags.encryption_provider_config_automatic_reload)
    encryption.register(lifecycle)
    return encryption
