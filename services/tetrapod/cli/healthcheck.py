"""`python -m tetrapod.cli.healthcheck [--ca FILE] [--certificate FILE --key FILE] [URL…]`: exit 0 where each answers 200, else 1.

For containers' health checks and the chart's test. Only the standard library, so that asking every few seconds costs little.
Without --ca the certificate is not verified, as a kubelet's probes do not either: the server is this container's own.
"""

from __future__ import annotations

import argparse
import ssl
import sys
import urllib.request
from typing import Final

READY: Final = "https://127.0.0.1:6443/readyz"


def main(arguments: list[str]) -> int:
    """Request the URLs and return the exit code: 0 if all are healthy."""
    parser = argparse.ArgumentParser(prog="healthcheck")
    parser.add_argument("--ca", help="the authority that the server's certificate must be of")
    parser.add_argument("--certificate", help="a client certificate")
    parser.add_argument("--key", help="its key")
    parser.add_argument("urls", nargs="*", default=[READY])
    given = parser.parse_args(arguments)
    try:
        context = _context(given.ca, given.certificate, given.key)
    except OSError as error:
        print(f"{given.ca or ''} {given.certificate or ''}: {error}".strip(), file=sys.stderr)
        return 1
    bad = [url for url in given.urls if not _good(url, context)]
    return 1 if bad else 0


def _context(ca: str | None, certificate: str | None, key: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


def _good(url: str, context: ssl.SSLContext) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=4, context=context) as answer:
            answer.read()
    except OSError as error:
        print(f"{url}: {error}", file=sys.stderr)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
