"""Encryption at rest, where --encryption-provider-config names a file: nothing of it is imported otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tetrapod.apps.options.options import Options
from tetrapod.generic.lifecycle.lifecycle import Lifecycle

if TYPE_CHECKING:
    from tetrapod.generic.storage.encryption.encryption import Encryption


def encryption_of(options: Options, lifecycle: Lifecycle) -> Encryption | None:
    """Return the encryption at rest, or None if it is not configured.

    Raises:
        ValueError: the file cannot be used; with upstream's text.
    """
    if not options.etcd.encryption_provider_config:
        if options.etcd.encryption_provider_config_automatic_reload:
            raise ValueError("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config")
        return None
    from tetrapod.generic.storage.encryption.encryption import Encryption

    encryption = Encryption(options.etcd.encryption_provider_config, reload=options.etcd.encryption_provider_config_automatic_reload)
    encryption.register(lifecycle)
    return encryption
