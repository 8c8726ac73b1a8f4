"""The four services as containers: images built on the local base image, and `docker compose`."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from ssl import _create_unverified_context
from typing import Any

from support.etcd import etcd_36, path_from
from support.server import free_port

ROOT = Path(__file__).parents[2]
BASE, IMAGE, LIBRARY = "tetrapod-base:trixie", "tetrapod:e2e", "tetrapod-library:e2e"
ETCD, REDIS, PROMETHEUS = "tetrapod-etcd:e2e", "tetrapod-redis:e2e", "tetrapod-prometheus:e2e"
FOUR = ("aggregator", "core", "extensions", "auth")
FILES = ("compose.yaml", "deploy/examples/library/compose.yaml")
_IMAGES = ROOT / "tests/e2e/images"
_BASE = ("--build-arg", f"BASE={BASE}")
_PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@functools.cache
def docker_environment() -> dict[str, str]:
    """Return the environment in which `docker` has Compose and BuildKit."""
    return {**os.environ, "DOCKER_CONFIG": path_from("compose.sh")}


def image_values(name: str) -> dict[str, str]:
    """Return the values of the chart for an image of this machine."""
    repository, tag = name.split(":")
    return {"registry": "", "repository": repository, "tag": tag}


def docker(*args: str, timeout: float = 600, errors: bool = False) -> str:
    done = subprocess.run(
        ["docker", *args],
        env=docker_environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"docker {' '.join(args)}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr if errors else done.stdout


def build_flags() -> list[str]:
    """Return the flags of `docker build` for an image that installs Python packages on the local base image."""
    settings = [flag for name in _PIP if name in os.environ for flag in ("--build-arg", f"{name}={os.environ[name]}")]
    return ["--network=host", *_BASE, *settings]


def docker_stand_in(directory: Path) -> Path:
    """Return a new directory with a program `docker` that adds `build_flags()` to builds, for documented commands."""
    program = directory / "docker-stand-in" / "docker"
    program.parent.mkdir()
    docker_path = shutil.which("docker")
    assert docker_path is not None, "docker is not installed"
    environment = f"DOCKER_CONFIG={docker_environment()['DOCKER_CONFIG']}"
    program.write_text(
        "#!/bin/sh\n"
        f"export {shlex.quote(environment)}\n"
        f'if [ "$1" = build ]; then shift; set -- build {shlex.join(build_flags())} "$@"; fi\n'
        f'exec {shlex.quote(docker_path)} "$@"\n'
    )
    program.chmod(0o755)
    return program.parent


def build_images() -> None:
    """Build the images that the tests of containers and charts need; unchanged layers come from the cache."""
    docker(
        "build",
        "-q",
        *build_flags(),
        "-f",
        str(ROOT / "deploy/Dockerfile"),
        "-t",
        IMAGE,
        str(ROOT),
    )
    docker("build", "-q", "--build-arg", f"IMAGE={IMAGE}", "-t", LIBRARY, str(ROOT / "deploy/examples/library"))
    build_stores()


def build_stores() -> None:
    """Build the images of etcd and redis."""
    etcdctl = Path(path_from("etcd.sh", "etcdctl"))
    assert etcdctl.parent == Path(etcd_36()).parent
    docker("build", "-q", *_BASE, "-f", str(_IMAGES / "etcd.Dockerfile"), "-t", ETCD, str(etcdctl.parent))
    docker("build", "-q", "--network=host", *_BASE, "-f", str(_IMAGES / "redis.Dockerfile"), "-t", REDIS, str(_IMAGES))


def prometheus_programs() -> Path:
    """Return the directory of prometheus and promtool. The first call on a machine builds them, which takes minutes."""
    return Path(path_from("prometheus.sh"))


def build_prometheus() -> None:
    dockerfile = str(_IMAGES / "prometheus.Dockerfile")
    docker("build", "-q", *_BASE, "-f", dockerfile, "-t", PROMETHEUS, str(prometheus_programs()))


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
        return {**docker_environment(), **images, **own, **self.variables}

    def __call__(self, *args: str) -> str:
        files = [flag for file in FILES for flag in ("-f", str(ROOT / file))]
        done = subprocess.run(
            ["docker", "compose", "-p", self.project, *files, *args],
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
        """Return the container's id, also if it has ended."""
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
