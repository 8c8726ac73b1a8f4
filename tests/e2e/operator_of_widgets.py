"""An operator written with kopf: for each Widget it keeps a ConfigMap with its size, and reports it in the status."""

from __future__ import annotations

from typing import Any, cast

import kopf
import kubernetes


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = True


@kopf.on.create("e2e.example.com", "v1", "widgets")
def created(*, spec: Any, name: str | None, namespace: str | None, body: Any, **_: Any) -> dict[str, Any]:
    child: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"of-{name}"},
        "data": {"size": str(spec["size"])},
    }
    kopf.adopt(child, owner=body)
    assert namespace is not None
    kubernetes.client.CoreV1Api().create_namespaced_config_map(namespace, cast(Any, child))
    return {"made": child["metadata"]["name"]}


@kopf.on.update("e2e.example.com", "v1", "widgets", field="spec.size")
def resized(*, new: Any, name: str | None, namespace: str | None, patch: Any, **_: Any) -> None:
    body = {"data": {"size": str(new)}}
    assert namespace is not None
    kubernetes.client.CoreV1Api().patch_namespaced_config_map(f"of-{name}", namespace, body)
    patch.status["phase"] = f"size {new}"


@kopf.on.delete("e2e.example.com", "v1", "widgets")
def deleted(**_: Any) -> None:
    """A deletion handler without effect, so that kopf adds its finalizer."""


@kopf.on.login()
def login(**kwargs: Any) -> Any:
    return kopf.login_via_client(**kwargs)
