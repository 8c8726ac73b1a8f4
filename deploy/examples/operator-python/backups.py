"""A small operator in plain Python: a Site gets a CronJob that saves it, of the schedule that an annotation says."""

from __future__ import annotations

import threading
from typing import Any

from kubernetes import client, watch

ANNOTATION = "example.com/backup"


class Operator:
    """`run` until `stop`. `reconcile` alone is all that there is to test."""

    def __init__(self, api: client.ApiClient) -> None:
        self._sites = client.CustomObjectsApi(api)
        self._batch = client.BatchV1Api(api)
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            sites = self._sites.list_custom_object_for_all_namespaces
            for event in watch.Watch().stream(sites, "example.com", "v1", "sites", timeout_seconds=1):
                if event["type"] != "DELETED":
                    self.reconcile(event["object"])
                if self._stopping.is_set():
                    return

    def stop(self) -> None:
        """Stop the operator when its current watch ends, within a second."""
        self._stopping.set()

    def reconcile(self, site: dict[str, Any]) -> None:
        metadata = site["metadata"]
        schedule = metadata.get("annotations", {}).get(ANNOTATION)
        name, namespace = f"{metadata['name']}-backup", metadata["namespace"]
        if schedule is None:
            self._remove(name, namespace)
            return
        owner = {
            "apiVersion": site["apiVersion"],
            "kind": site["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
        container = {"name": "backup", "image": "example.com/backup:1", "args": [metadata["name"]]}
        job = {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
        body = {
            "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
            "spec": {"schedule": schedule, "jobTemplate": {"spec": job}},
        }
        try:
            self._batch.create_namespaced_cron_job(namespace, body)
        except client.ApiException as error:
            if error.status != 409:
                raise
            self._batch.patch_namespaced_cron_job(name, namespace, body)

    def _remove(self, name: str, namespace: str) -> None:
        try:
            self._batch.delete_namespaced_cron_job(name, namespace)
        except client.ApiException as error:
            if error.status != 404:
                raise
