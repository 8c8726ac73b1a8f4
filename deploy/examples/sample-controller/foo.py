"""The custom resource Foo, and the Deployment that a Foo wants."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from tetrapod.crds import Column, CustomResource, Version

GROUP, VERSION = "samplecontroller.example.com", "v1alpha1"


class Spec(BaseModel):
    deploymentName: str = Field(min_length=1, description="The name of the Deployment.")  # noqa: N815
    replicas: int = Field(default=1, ge=1, le=10, description="How many replicas the Deployment has.")


class Status(BaseModel):
    availableReplicas: int = 0  # noqa: N815


class Foo(BaseModel):
    """A Foo runs a Deployment."""

    spec: Spec
    status: Status | None = None


COLUMNS = [
    Column("Deployment", ".spec.deploymentName"),
    Column("Replicas", ".spec.replicas", "integer"),
    Column("Available", ".status.availableReplicas", "integer"),
]
FOO = CustomResource(GROUP, "Foo", [Version(VERSION, Foo, columns=COLUMNS)])


def deployment_of(foo: dict[str, Any]) -> dict[str, Any]:
    """Return the Deployment that a Foo wants. The Foo owns it, so that it is deleted with the Foo."""
    metadata, labels = foo["metadata"], {"app": "nginx", "controller": foo["metadata"]["name"]}
    owner = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Foo", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "metadata": {
            "name": foo["spec"]["deploymentName"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "replicas": foo["spec"]["replicas"],
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:1.29"}]},
            },
        },
    }


def not_managed(name: str) -> str:
    """Return the message for a Deployment that something else owns."""
    return f'Resource "{name}" already exists and is not managed by Foo'
