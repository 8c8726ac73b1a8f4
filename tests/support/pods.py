"""Run the pods of a rendered chart as Docker containers, in the place of kubelet and Services.

Each Service is a network. A container is connected to the networks of all Services that do not select it, as their
client. Once its readiness probe succeeds, it joins the networks of the Services that select it under their names, so
that only ready pods are found.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.compose import docker
from support.kubectl import Kubectl

Object = dict[str, Any]
USER = 65532


@dataclass
class Pods:
    """Runs pods of the namespace of `kubectl`; containers and networks carry the project's name."""

    project: str
    directory: Path
    kubectl: Kubectl
    services: dict[str, Object] = field(default_factory=dict)
    running: dict[str, Object] = field(default_factory=dict)

    def create_networks(self) -> None:
        for service in self.kubectl.json("get", "services")["items"]:
            name = service["metadata"]["name"]
            self.services[name] = service["spec"]
            docker("network", "create", "--internal", self._network(name))

    def run(self, name: str, template: Object) -> None:
        """Start a pod of one container. It joins only Services with `publishNotReadyAddresses` until it is ready."""
        self.running[name] = template
        labels = template["metadata"]["labels"]
        (container,) = template["spec"]["containers"]
        docker(
            "create",
            "--name",
            self.container(name),
            "--network",
            "none",
            *self._flags(name, template["spec"], container),
        )
        docker("network", "disconnect", "none", self.container(name))
        for service, spec in self.services.items():
            if not selects(spec, labels):
                docker("network", "connect", self._network(service), self.container(name))
            elif spec.get("publishNotReadyAddresses"):
                self._join(service, name, labels)
        docker("start", self.container(name))

    def run_to_end(self, name: str, spec: Object, *flags: str) -> int:
        """Run the pod of a job to its end and return the exit code. `flags` select its networks."""
        (container,) = spec["containers"]
        docker("create", "--name", self.container(name), *flags, *self._flags(name, spec, container))
        docker("start", self.container(name))
        code = int(docker("wait", self.container(name)))
        if code:
            print(self.logs(name))
        docker("rm", self.container(name))
        return code

    def wait_ready(self, *names: str, timeout: float = 90) -> None:
        """Wait until all are ready.

        Each joins its Services as soon as it is ready, so that pods can wait for each other.
        """
        deadline = time.monotonic() + timeout
        waiting = set(names)
        while waiting:
            for name in sorted(waiting):
                template = self.running[name]
                if self._ready(name, template["spec"]["containers"][0]):
                    waiting.discard(name)
                    for service, spec in self.services.items():
                        if selects(spec, template["metadata"]["labels"]) and not spec.get("publishNotReadyAddresses"):
                            self._join(service, name, template["metadata"]["labels"])
            assert time.monotonic() < deadline, "\n".join(
                f"--- {name} is not ready:\n{self.logs(name)}" for name in waiting
            )
            time.sleep(0.2)  # other processes send no notification

    def write_volumes(self, name: str) -> None:
        """Update the mounted files from the current Secrets and ConfigMaps, as kubelet does periodically."""
        for volume in self.running[name]["spec"]["volumes"]:
            self._write_volume(name, volume)

    def address(self, name: str) -> str:
        networks = json.loads(docker("inspect", self.container(name)))[0]["NetworkSettings"]["Networks"]
        return next(str(found["IPAddress"]) for found in networks.values() if found["IPAddress"])

    def networks(self, *services: str) -> list[str]:
        return [flag for service in services for flag in ("--network", self._network(service))]

    def container(self, name: str) -> str:
        return f"{self.project}-{name}"

    def logs(self, name: str) -> str:
        return docker("logs", "--tail=40", self.container(name), errors=True)

    def remove(self) -> None:
        mine = ("--quiet", "--filter", f"name=^{self.project}-")
        if containers := docker("ps", "--all", *mine).split():
            docker("rm", "--force", "--volumes", *containers)
        if networks := docker("network", "ls", *mine).split():
            docker("network", "rm", *networks)

    # --- parts

    def _network(self, service: str) -> str:
        return f"{self.project}-net-{service}"

    def _join(self, service: str, name: str, labels: Object) -> None:
        full = f"{service}.{self.kubectl.namespace}.svc"
        names = [service, f"{service}.{self.kubectl.namespace}", full]
        if "statefulset.kubernetes.io/pod-name" in labels:
            names = [f"{labels['statefulset.kubernetes.io/pod-name']}.{full}"]
        aliases = [flag for alias in names for flag in ("--alias", alias)]
        docker("network", "connect", *aliases, self._network(service), self.container(name))

    def _flags(self, name: str, spec: Object, container: Object) -> list[str]:
        security, pod = container["securityContext"], spec["securityContext"]
        env = {item["name"]: item.get("value", name) for item in container.get("env", [])}
        words = [expand(str(word), env) for word in [*container.get("command", []), *container.get("args", [])]]
        flags = [
            "--user",
            f"{pod['runAsUser']}:{pod['runAsGroup']}",
            "--security-opt",
            "no-new-privileges:true",
            "--no-healthcheck",
        ]
        flags += [flag for capability in security["capabilities"]["drop"] for flag in ("--cap-drop", capability)]
        flags += ["--read-only"] if security["readOnlyRootFilesystem"] else []
        flags += [flag for key, value in env.items() for flag in ("--env", f"{key}={value}")]
        flags += ["--memory", container["resources"]["limits"]["memory"].removesuffix("i").lower()]
        volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
        for mount in container["volumeMounts"]:
            volume = volumes.get(mount["name"], {"name": mount["name"], "claim": True})
            if "emptyDir" in volume:
                flags += ["--tmpfs", f"{mount['mountPath']}:uid={USER},gid={USER},mode=1777"]
            else:
                source = self._write_volume(name, volume)
                flags += ["--volume", f"{source}:{mount['mountPath']}{':ro' if mount.get('readOnly') else ''}"]
        if spec.get("automountServiceAccountToken"):
            flags += [
                "--volume",
                f"{self.directory / name / 'account'}:/var/run/secrets/kubernetes.io/serviceaccount:ro",
            ]
        if container.get("command"):
            flags += ["--entrypoint", words.pop(0)]
        return [*flags, container["image"], *words]

    def _write_volume(self, name: str, volume: Object) -> Path:
        path = self.directory / name / str(volume["name"])
        path.mkdir(parents=True, exist_ok=True)
        os.chown(path, USER if "claim" in volume else 0, USER)
        path.chmod(0o750)
        for file, data in self._files(volume).items():
            whole = path / f".{file}"
            whole.write_bytes(data)
            os.chown(whole, 0, USER)
            whole.chmod(0o440)
            whole.rename(path / file)
        return path

    def _files(self, volume: Object) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for source in [volume, *volume.get("projected", {}).get("sources", [])]:
            if "secret" in source:
                secret = self.kubectl.json(
                    "get", "secret", source["secret"].get("secretName") or source["secret"]["name"]
                )
                data = {key: base64.b64decode(value) for key, value in secret["data"].items()}
                items = source["secret"].get("items") or [{"key": key, "path": key} for key in data]
                found |= {item["path"]: data[item["key"]] for item in items}
            if "configMap" in source:
                found |= {
                    key: value.encode()
                    for key, value in self.kubectl.json("get", "configmap", source["configMap"]["name"])["data"].items()
                }
        return found

    def _ready(self, name: str, container: Object) -> bool:
        probe = container["readinessProbe"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        if "httpGet" not in probe:
            return True
        asked = probe["httpGet"]
        url = f"{asked.get('scheme', 'HTTP').lower()}://{self.address(name)}:{ports[asked['port']]}{asked['path']}"
        try:
            with urllib.request.urlopen(url, context=ssl._create_unverified_context(), timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            running = docker("inspect", "--format={{.State.Running}}", self.container(name)).strip() == "true"
            if not running:
                docker("start", self.container(name))  # restartPolicy: Always
            return False


def selects(service: Object, labels: Object) -> bool:
    selector = service.get("selector")
    return selector is not None and bool(selector) and selector.items() <= labels.items()


def expand(word: str, env: dict[str, str]) -> str:
    """Expand Kubernetes' `$(NAME)` references."""
    return re.sub(r"\$\(([A-Za-z_]\w*)\)", lambda found: env.get(found[1], found[0]), word)
