#!/usr/bin/env python3
"""Run runc, and ask only for those capabilities that this machine has.

In some sandboxes even root lacks a capability, such as CAP_SYS_RESOURCE. Docker asks for all of them if a container is
privileged, and runc rejects that. tools/dockerd.sh makes this program Docker's runtime on such a machine: it removes
the missing capabilities from the configuration of containers and of `docker exec`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

NAMES = (
    "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
    "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN "
    "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE "
    "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
)
"""Names by bit, as in linux/capability.h."""


def missing() -> set[str]:
    """Return the names of the capabilities that are not in this process' bounding set."""
    status = Path("/proc/self/status").read_text().splitlines()
    (bounding,) = (int(line.split()[1], 16) for line in status if line.startswith("CapBnd:"))
    return {f"CAP_{name}" for bit, name in enumerate(NAMES.split()) if not bounding >> bit & 1}


def limit(path: Path) -> None:
    """Remove the missing capabilities from the configuration of a container, or of a process in one."""
    configuration = json.loads(path.read_text())
    capabilities = configuration.get("process", configuration).get("capabilities", {})
    removed = missing()
    for kind, names in capabilities.items():
        capabilities[kind] = [name for name in names if name not in removed]
    path.write_text(json.dumps(configuration))


def main(arguments: list[str]) -> None:
    if "--bundle" in arguments:
        limit(Path(arguments[arguments.index("--bundle") + 1]) / "config.json")
    if "--process" in arguments:
        limit(Path(arguments[arguments.index("--process") + 1]))
    os.execvp("runc", ["runc", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
