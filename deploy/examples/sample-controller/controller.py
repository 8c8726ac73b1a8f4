"""sample-controller with the plain client: watches feed a queue of names, and one worker reconciles them."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from foo import GROUP, VERSION, deployment_of, not_managed
from kubernetes import client, config, watch

log = logging.getLogger("sample-controller")
FOOS = (GROUP, VERSION)
RETRY_SECONDS = 1.0
Key = tuple[str, str]


class Controller:
    """The controller. `run` serves until the process ends."""

    def __init__(self, api: client.ApiClient) -> None:
        self._foos = client.CustomObjectsApi(api)
        self._apps = client.AppsV1Api(api)
        self._core = client.CoreV1Api(api)
        self._queue: queue.Queue[Key] = queue.Queue()

    def run(self) -> None:
        """Watch Foos and Deployments, and reconcile each Foo that may have changed. A failed one is tried again."""
        for feed in (self._feed_foos, self._feed_deployments):
            threading.Thread(target=self._forever, args=(feed,), daemon=True).start()
        while True:
            key = self._queue.get()
            try:
                self.sync(*key)
            except Exception as error:
                log.info("%s/%s is tried again: %s", *key, error)
                threading.Timer(RETRY_SECONDS, self._queue.put, (key,)).start()

    def _forever(self, feed: Callable[[], None]) -> None:
        while True:
            try:
                feed()
            except (client.ApiException, OSError) as error:
                log.info("watching again: %s", error)
                threading.Event().wait(RETRY_SECONDS)

    def _feed_foos(self) -> None:
        foos = self._foos.list_custom_object_for_all_namespaces
        for event in watch.Watch().stream(foos, *FOOS, "foos", timeout_seconds=60):
            metadata = event["object"]["metadata"]
            self._queue.put((metadata["namespace"], metadata["name"]))

    def _feed_deployments(self) -> None:
        for event in watch.Watch().stream(self._apps.list_deployment_for_all_namespaces, timeout_seconds=60):
            metadata = event["object"].metadata
            for owner in metadata.owner_references or ():
                if owner.controller and owner.kind == "Foo":
                    self._queue.put((metadata.namespace, owner.name))

    def sync(self, namespace: str, name: str) -> None:
        """Bring the Deployment of a Foo and the status of the Foo up to date.

        Raises:
            RuntimeError: the Deployment exists, and something else owns it.
            ApiException: a request failed.
        """
        try:
            foo = self._foos.get_namespaced_custom_object(*FOOS, namespace, "foos", name)
        except client.ApiException as error:
            if error.status == 404:
                return  # deleted; the garbage collector deletes the Deployment
            raise
        wanted = deployment_of(foo)
        deployment = self._get_or_create(wanted)
        owners = deployment.metadata.owner_references or ()
        if not any(owner.controller and owner.uid == foo["metadata"]["uid"] for owner in owners):
            message = not_managed(deployment.metadata.name)
            self._record(foo, "Warning", "ErrResourceExists", message)
            raise RuntimeError(message)
        if deployment.spec.replicas != foo["spec"]["replicas"]:
            patch = {"spec": {"replicas": foo["spec"]["replicas"]}}
            deployment = self._apps.patch_namespaced_deployment(deployment.metadata.name, namespace, patch)
        status = {"availableReplicas": deployment.status.available_replicas or 0}
        if foo.get("status") != status:
            self._foos.patch_namespaced_custom_object_status(*FOOS, namespace, "foos", name, {"status": status})
            self._record(foo, "Normal", "Synced", "Foo synced successfully")

    def _get_or_create(self, wanted: dict[str, Any]) -> Any:
        name, namespace = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
        try:
            return self._apps.read_namespaced_deployment(name, namespace)
        except client.ApiException as error:
            if error.status != 404:
                raise
        return self._apps.create_namespaced_deployment(namespace, wanted)

    def _record(self, foo: dict[str, Any], type_: str, reason: str, message: str) -> None:
        metadata, now = foo["metadata"], datetime.now(UTC)
        reference = {key: metadata[key] for key in ("name", "namespace", "uid")}
        involved = {"apiVersion": foo["apiVersion"], "kind": "Foo", **reference}
        event = {
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": involved,
            "type": type_,
            "reason": reason,
            "message": message,
            "source": {"component": "sample-controller"},
            "firstTimestamp": now.isoformat(),
            "lastTimestamp": now.isoformat(),
            "count": 1,
        }
        self._core.create_namespaced_event(metadata["namespace"], event)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    config.load_config()
    Controller(client.ApiClient()).run()
