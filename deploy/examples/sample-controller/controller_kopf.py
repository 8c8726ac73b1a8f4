"""sample-controller with kopf, which watches, retries and records events."""

from __future__ import annotations

from typing import Any

import kopf
from foo import GROUP, VERSION, deployment_of, not_managed
from kubernetes import client, config

FOOS = (GROUP, VERSION, "foos")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    config.load_config()
    settings.persistence.finalizer = f"{GROUP}/kopf"
    # The schema of Foo has no place for kopf's own status.
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)


@kopf.on.resume(*FOOS)
@kopf.on.create(*FOOS)
@kopf.on.update(*FOOS, field="spec")
def reconcile(body: kopf.Body, **_: Any) -> None:
    """Bring the Deployment of a Foo and the status of the Foo up to date."""
    sync(dict(body))


@kopf.on.event("apps", "v1", "deployments", labels={"controller": kopf.PRESENT})
def deployment_changed(body: kopf.Body, **_: Any) -> None:
    """Reconcile the Foo that owns a Deployment, after a change of the Deployment."""
    metadata = body["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller") and owner["kind"] == "Foo":
            foos = client.CustomObjectsApi()
            try:
                foo = foos.get_namespaced_custom_object(GROUP, VERSION, metadata["namespace"], "foos", owner["name"])
            except client.ApiException as error:
                if error.status != 404:
                    raise
                return  # deleted; the garbage collector deletes the Deployment
            sync(foo)


def sync(foo: dict[str, Any]) -> None:
    """Bring the Deployment of a Foo and the status of the Foo up to date.

    Raises:
        TemporaryError: the Deployment exists, and something else owns it. kopf calls the handler again.
    """
    apps, wanted = client.AppsV1Api(), deployment_of(foo)
    name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
    try:
        deployment = apps.read_namespaced_deployment(name, namespace)
    except client.ApiException as error:
        if error.status != 404:
            raise
        deployment = apps.create_namespaced_deployment(namespace, wanted)
    owners = deployment.metadata.owner_references or ()
    if not any(owner.controller and owner.uid == foo["metadata"]["uid"] for owner in owners):
        kopf.warn(foo, reason="ErrResourceExists", message=not_managed(name))
        raise kopf.TemporaryError(not_managed(name), delay=1)
    if deployment.spec.replicas != foo["spec"]["replicas"]:
        patch = {"spec": {"replicas": foo["spec"]["replicas"]}}
        deployment = apps.patch_namespaced_deployment(name, namespace, patch)
    status = {"availableReplicas": deployment.status.available_replicas or 0}
    if foo.get("status") != status:
        client.CustomObjectsApi().patch_namespaced_custom_object_status(
            GROUP, VERSION, namespace, "foos", foo["metadata"]["name"], {"status": status}
        )
        kopf.info(foo, reason="Synced", message="Foo synced successfully")
