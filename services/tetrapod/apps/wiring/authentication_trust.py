"""The identity headers of front proxies, and the data of the ConfigMap `extension-apiserver-authentication`.

The ConfigMap tells extension API servers which certificates and headers to accept.

Upstream: pkg/controlplane/controller/clusterauthenticationtrust.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson

from tetrapod.apps.options.authentication import RequestHeaderFlags
from tetrapod.apps.options.options import Options
from tetrapod.apps.wiring.certificate_authorities import AuthorityFiles
from tetrapod.generic.authentication.requestheader import REMOTE_UID_GATE, HeaderNames
from tetrapod.generic.configuration import feature_gates
from tetrapod.machinery.error_aggregate import aggregate_errors

_UID_HEADERS: Final = "requestheader-uid-headers"


def check_request_headers(options: Options) -> None:
    """Check the flags that name the identity headers of front proxies.

    Upstream: staging/src/k8s.io/apiserver/pkg/server/options/authentication.go,
    RequestHeaderAuthenticationOptions.Validate

    Raises:
        ValueError: a name is empty, or the uid headers are not possible; the text is upstream's.
    """
    flags = options.authentication.request_header
    names = {
        "requestheader-username-headers": flags.username_headers,
        "requestheader-group-headers": flags.group_headers,
        "requestheader-extra-headers-prefix": flags.extra_headers_prefix,
        "requestheader-allowed-names": flags.allowed_names,
    }
    enabled = feature_gates.enabled(REMOTE_UID_GATE)
    if enabled:
        names[_UID_HEADERS] = flags.uid_headers
    errors = [f'empty value in "{name}"' for name, values in names.items() if not all(map(str.strip, values))]
    if flags.uid_headers and not enabled and _UID_HEADERS in options.given:
        errors.append(f'--{_UID_HEADERS} requires the "{REMOTE_UID_GATE}" feature to be enabled')
    elif flags.uid_headers and enabled and "x-remote-uid" not in map(str.lower, flags.uid_headers):
        text = "is set without specifying the standard X-Remote-Uid header - API aggregation will not work"
        errors.append(f"--{_UID_HEADERS} {text}")
    if errors:
        raise ValueError(aggregate_errors(errors))


def header_names(flags: RequestHeaderFlags, *, of_peers: bool = False) -> HeaderNames:
    """Return the names of the identity headers in which front proxies pass the user.

    Args:
        flags: the flags of the front proxy's request headers.
        of_peers: whether the only front proxy is the aggregator of these four services, which always passes the uid.
    """
    return HeaderNames(
        user=flags.username_headers,
        uid=flags.uid_headers if of_peers or feature_gates.enabled(REMOTE_UID_GATE) else (),
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
        "requestheader-username-headers": flags.username_headers,
    }
    if feature_gates.enabled(REMOTE_UID_GATE):
        lists[_UID_HEADERS] = flags.uid_headers
    fixed = {key: orjson.dumps(value).decode() for key, value in lists.items()}
    return lambda: {
        "client-ca-file": clients.pem.decode(),
        "requestheader-client-ca-file": proxies.pem.decode(),
        **fixed,
    }
