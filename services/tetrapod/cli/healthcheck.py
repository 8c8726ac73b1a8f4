"""`python -m tetrapod.cli.healthcheck [URL]`: exit 0 where a server says that it is ready, else 1; for containers' health checks.

Only the standard library, so that asking every few seconds costs little. The certificate is not verified, as a kubelet's
probes do not either: the server is this container's own.
"""

from __future__ import annotations

import ssl
import sys
import urllib.request
from typing import Final

READY: Final = "https://127.0.0.1:6443/readyz"


def main(arguments: list[str]) -> int:
    url = arguments[0] if arguments else READY
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=4, context=context) as answer:
            answer.read()
    except OSError as error:
        print(f"{url}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
