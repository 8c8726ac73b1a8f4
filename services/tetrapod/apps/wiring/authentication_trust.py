"""The identity headers of front proxies, and the data of the ConfigMap `extension-apiserver-authentication`.

The ConfigMap tells extension API servers which certificates and headers to accept.

Upstream: pkg/controlplane/controller/clusterauthenticationtrust.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from tetrapod.apps.options.authentication import RequestHeaderFlags
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.generic.authentication.requestheader import HeaderNames


def header_names(flags: RequestHeaderFlags) -> HeaderNames:
    """Return the names of the identity headers in which front proxies pass the user."""
    return HeaderNames(
        user=flags.username_headers,
        uid=flags.uid_headers,
        group=flags.group_headers,
        extra_prefixes=flags.extra_headers_prefix,
    )


def authentication_data(
    flags: RequestHeaderFlags, clients: AuthorityFiles, proxies: AuthorityFiles
) -> Callable[[], dict[str, str]]:
    """Return a function that returns the data of the ConfigMap `extension-apiserver-authentication`.

    Each call returns the CA certificates as they are at that time, because their files may be reloaded.

    Args:
        flags: the flags of the front proxy's request headers.
        clients: the CA certificates of clients.
        proxies: the CA certificates of front proxies.
    """
    lists = {
        "requestheader-allowed-names": flags.allowed_names,
        "requestheader-extra-headers-prefix": flags.extra_headers_prefix,
        "requestheader-group-headers": flags.group_headers,
        "requestheader-uid-headers": flags.uid_headers,
        "requestheader-username-headers": flags.username_headers,
    }
    fixed = {key: orjson.dumps(value).decode() for key, value in lists.items()}
    return lambda: {
        "client-ca-file": clients.pem.decode(),
        "requestheader-client-ca-file": proxies.pem.decode(),
        **fixed,
    }
