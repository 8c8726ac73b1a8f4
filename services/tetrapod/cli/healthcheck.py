"""`python -m tetrapod.cli.healthcheck [URL…]`: exits with 0 if each URL responds with 2xx.

Usage: `python -m tetrapod.cli.healthcheck [--ca FILE] [--certificate FILE --key FILE] [URL…]`.

For health checks of containers and for the chart's test. It imports only the standard library, because it is called
every few seconds. Without --ca the certificate is not verified, as in a kubelet's probes.
"""

from __future__ import annotations

import argparse
import ssl
import sys
import urllib.request
from typing import Final

READY: Final = "https://127.0.0.1:6443/readyz"


def main(arguments: list[str]) -> int:
    """Request all URLs on the command line, and return the exit code: 0 if each responds with a status of 2xx, else 1.

    A request fails if no data arrives for 4 seconds.
    """
    parser = argparse.ArgumentParser(prog="healthcheck")
    parser.add_argument("--ca", help="the CA of the server certificate")
    parser.add_argument("--certificate", help="a client certificate")
    parser.add_argument("--key", help="the key of the client certificate")
    parser.add_argument("urls", nargs="*", default=[READY])
    options = parser.parse_args(arguments)
    try:
        context = _context(options.ca, options.certificate, options.key)
    except OSError as error:
        print(f"{options.ca or ''} {options.certificate or ''}: {error}".strip(), file=sys.stderr)
        return 1
    failed = [url for url in options.urls if not _is_healthy(url, context)]
    return 1 if failed else 0


def _context(ca: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


def _is_healthy(url: str, context: ssl.SSLContext) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=4, context=context) as response:
            response.read()
    except OSError as error:
        print(f"{url}: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
