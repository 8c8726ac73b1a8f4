"""The data of `extension-apiserver-authentication`: whom extension API servers may believe (upstream: clusterauthenticationtrust)."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from tetrapod.apps.options import Options
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.generic.authentication.requestheader import HeaderNames


def header_names(options: Options) -> HeaderNames:
    """Where front proxies say who asks."""
    return HeaderNames(
        options.requestheader_username_headers,
        options.requestheader_uid_headers,
        options.requestheader_group_headers,
        options.requestheader_extra_headers_prefix,
    )


def authentication_data(options: Options, clients: AuthorityFiles, proxies: AuthorityFiles) -> Callable[[], dict[str, str]]:
    """As it is at the moment of the call."""
    lists = {
        "requestheader-allowed-names": options.requestheader_allowed_names,
        "requestheader-extra-headers-prefix": options.requestheader_extra_headers_prefix,
        "requestheader-group-headers": options.requestheader_group_headers,
        "requestheader-uid-headers": options.requestheader_uid_headers,
        "requestheader-username-headers": options.requestheader_username_headers,
    }
    fixed = {key: orjson.dumps(value).decode() for key, value in lists.items()}
    return lambda: {"client-ca-file": clients.pem.decode(), "requestheader-client-ca-file": proxies.pem.decode(), **fixed}
