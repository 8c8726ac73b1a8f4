"""Generate the _pb2.py and .pyi beside each .proto: the messages of etcd, plugins and Prometheus.

Needs grpcio-tools.

python tools/generate_messages.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

SOURCES = Path(__file__).parent.parent / "services"
# protobuf registers a file by its path from the source root, which makes the name unique in a process.
PROTOS = (
    "tetrapod/auth/tokens/external/external.proto",
    "tetrapod/generic/storage/etcd/etcd.proto",
    "tetrapod/generic/storage/encryption/kms/kms.proto",
    "tetrapod/generic/storage/encryption/kms_v1/kms_v1.proto",
    "tetrapod/generic/observability/exposition/families.proto",
)


def main() -> int:
    files = [str(SOURCES / proto) for proto in PROTOS]
    return int(protoc.main(["protoc", f"-I{SOURCES}", f"--python_out={SOURCES}", f"--pyi_out={SOURCES}", *files]))


if __name__ == "__main__":
    sys.exit(main())
