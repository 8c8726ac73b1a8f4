"""The data of `extension-apiserver-authentication`: whom extension API servers may believe (upstream: clusterauthenticationtrust)."""

from __future__ import annotations

import orjson

from tetrapod.cli.options import Options


def authentication_data(options: Options, client_ca: bytes, front_proxy_ca: bytes) -> dict[str, str]:
    lists = {
        "requestheader-allowed-names": options.requestheader_allowed_names,
        "requestheader-extra-headers-prefix": options.requestheader_extra_headers_prefix,
        "requestheader-group-headers": options.requestheader_group_headers,
        "requestheader-uid-headers": options.requestheader_uid_headers,
        "requestheader-username-headers": options.requestheader_username_headers,
    }
    return {
        "client-ca-file": client_ca.decode(),
        "requestheader-client-ca-file": front_proxy_ca.decode(),
        **{key: orjson.dumps(value).decode() for key, value in lists.items()},
    }
