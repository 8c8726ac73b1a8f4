"""The four services as containers: images built on the local base image, and `docker compose` (or its older
`docker-compose`).
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from ssl import _create_unverified_context
from typing import Any

from support.etcd import etcd_36
from support.server import free_port

ROOT = Path(__file__).parents[2]
BASE, IMAGE, LIBRARY = "tetrapod-base:local", "tetrapod:e2e", "tetrapod-library:e2e"
ETCD, REDIS = "tetrapod-etcd:e2e", "tetrapod-redis:e2e"
FOUR = ("aggregator", "core", "extensions", "auth")
FILES = ("compose.yaml", "tests/e2e/compose.local.yaml", "deploy/examples/library/compose.yaml")
_PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def docker(*args: str, timeout: float = 600, errors: bool = False) -> str:
    # The classic builder is in every engine; BuildKit may need a plug-in that is not there.
    done = subprocess.run(
        ["docker", *args],
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"docker {' '.join(args)}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr if errors else done.stdout


def build_images() -> None:
    """Build the images; unchanged layers come from the cache."""
    settings = [flag for name in _PIP if name in os.environ for flag in ("--build-arg", f"{name}={os.environ[name]}")]
    base = ("--build-arg", f"BASE={BASE}")
    docker(
        "build", "-q", "--network=host", *base, *settings, "-f", str(ROOT / "deploy/Dockerfile"), "-t", IMAGE, str(ROOT)
    )
    docker("build", "-q", "--build-arg", f"IMAGE={IMAGE}", "-t", LIBRARY, str(ROOT / "deploy/examples/library"))
    images = ROOT / "tests/e2e/images"
    docker("build", "-q", *base, "-f", str(images / "etcd.Dockerfile"), "-t", ETCD, str(Path(etcd_36()).parent))
    docker("build", "-q", "--network=host", *base, "-f", str(images / "redis.Dockerfile"), "-t", REDIS, str(images))


@functools.cache
def _command() -> Sequence[str]:
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return ("docker", "compose")
    if shutil.which("docker-compose"):
        return ("docker-compose",)
    raise AssertionError(
        "neither `docker compose` nor docker-compose is there; tools/prepare.sh containers installs one"
    )


@dataclass
class Compose:
    """One project: its containers, networks and volumes carry its name."""

    project: str
    directory: Path
    port: int
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def new(cls, directory: Path, variables: dict[str, str] | None = None) -> Compose:
        port = free_port()
        return cls(f"tetrapod-e2e-{port}", directory, port, variables or {})

    @property
    def credentials(self) -> Path:
        return self.directory / "credentials"

    def environment(self) -> dict[str, str]:
        images = {"TETRAPOD_IMAGE": IMAGE, "LIBRARY_IMAGE": LIBRARY, "ETCD_IMAGE": ETCD, "REDIS_IMAGE": REDIS}
        own = {"TETRAPOD_PORT": str(self.port), "LIBRARY_CREDENTIALS": str(self.credentials)}
        return {**os.environ, **images, **own, **self.variables}

    def __call__(self, *args: str) -> str:
        files = [flag for file in FILES for flag in ("-f", str(ROOT / file))]
        done = subprocess.run(
            [*_command(), "-p", self.project, *files, *args],
            cwd=ROOT,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"compose {' '.join(args)}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def container(self, service: str) -> str:
        """Return the container's id, also if it has ended.

        Old versions of compose list ended containers only with `--all`.
        """
        labels = (f"label=com.docker.compose.project={self.project}", f"label=com.docker.compose.service={service}")
        return docker("ps", "--all", "--quiet", "--filter", labels[0], "--filter", labels[1]).split()[0]

    def inspect(self, service: str) -> Any:
        return json.loads(docker("inspect", self.container(service)))[0]

    def healthy(self, service: str) -> int:
        """Return how many replicas of the service are healthy."""
        labels = (f"label=com.docker.compose.project={self.project}", f"label=com.docker.compose.service={service}")
        return len(
            docker("ps", "--quiet", "--filter", labels[0], "--filter", labels[1], "--filter", "health=healthy").split()
        )

    def copy(self, service: str, source: str, target: Path) -> Path:
        docker("cp", f"{self.container(service)}:{source}", str(target))
        return target

    def wait_healthy(self, *services: str, timeout: float = 90) -> None:
        deadline = time.monotonic() + timeout
        for service in services:
            while (state := self.inspect(service)["State"])["Health"]["Status"] != "healthy":
                if time.monotonic() > deadline:
                    raise AssertionError(f"{service} is {state['Status']}, {state['Health']}:\n{self.logs(service)}")
                time.sleep(0.2)  # Docker sends no notification

    def wait_ready(self, timeout: float = 60) -> None:
        """Wait until the aggregator is ready."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                with urllib.request.urlopen(
                    f"https://localhost:{self.port}/readyz", context=_create_unverified_context(), timeout=5
                ):
                    return
            except (urllib.error.URLError, OSError):
                assert time.monotonic() < deadline, self.logs("aggregator")
                time.sleep(0.1)

    def logs(self, service: str) -> str:
        done = subprocess.run(
            ["docker", "logs", "--tail=60", self.container(service)], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def down(self) -> None:
        self("down", "--volumes", "--timeout", "10")
