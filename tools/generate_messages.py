"""Generates services/tetrapod/generic/storage/etcd/etcd_pb2.py and .pyi from etcd.proto. Needs grpcio-tools.

python tools/generate_etcd_messages.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

SOURCES = Path(__file__).parent.parent / "services"
# The path from the source root is the name under which protobuf knows the file, so it is unique in any process.
PROTO = "tetrapod/generic/storage/etcd/etcd.proto"


def main() -> int:
    return int(protoc.main(["protoc", f"-I{SOURCES}", f"--python_out={SOURCES}", f"--pyi_out={SOURCES}", str(SOURCES / PROTO)]))


if __name__ == "__main__":
    sys.exit(main())
