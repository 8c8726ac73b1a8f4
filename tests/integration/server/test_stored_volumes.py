"""Volumes, claims and capacities that were stored before a rule existed can still be updated.

The answers are compared with those of kube-apiserver too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from integration.server.edited_store import Setting, serving
from support.forms import ETCD, STOCK
from support.https_client import MERGE, causes, created
from tetrapod.machinery.gvk import Object

VOLUMES: Final = "/api/v1/persistentvolumes"
CLAIMS: Final = "/api/v1/namespaces/default/persistentvolumeclaims"
CAPACITIES: Final = "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities"
ATTACHMENTS: Final = "/apis/storage.k8s.io/v1/volumeattachments"
LABELLED: Final = {"metadata": {"labels": {"a": "b"}}}
LABEL_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
INVALID: Final = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["a b"]}]}
OTHER: Final = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["c d"]}]}
SNAPSHOT: Final = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"}


@pytest.fixture(scope="module", params=[ETCD, STOCK])
def setting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    with serving(tmp_path_factory.mktemp("volumes"), request.param) as made:
        yield made


def volume(name: str, terms: list[Object] | None = None) -> Object:
    spec: Object = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "d.example.com", "volumeHandle": "h"},
    }
    if terms is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return {"metadata": {"name": name}, "spec": spec}


def claim(name: str, **spec: object) -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    return {
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, "storageClassName": "", **spec},
    }


def test_only_a_stored_volume_may_have_invalid_values_in_its_node_affinity(setting: Setting) -> None:
    path = "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]"
    error = f'{path}: Invalid value: "a b": {LABEL_VALUE}'
    assert set(causes(setting.client.call("POST", VOLUMES, volume("v", [INVALID])))) == {error}
    created(setting.client, VOLUMES, volume("v"))
    change = {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [INVALID]}}}}
    rejected = setting.client.call("PATCH", f"{VOLUMES}/v", change, MERGE)
    assert set(causes(rejected)) == {error}
    setting.replace(f"{VOLUMES}/v", "/registry/persistentvolumes/v", change)
    updated = setting.client.call("PATCH", f"{VOLUMES}/v", LABELLED, MERGE)
    assert (updated.status, updated.body["metadata"].get("labels")) == (200, {"a": "b"}), updated.message


def test_only_a_stored_claim_may_have_invalid_values_in_its_selector(setting: Setting) -> None:
    error = f'spec.selector.matchExpressions[0].values[0]: Invalid value: "a b": {LABEL_VALUE}'
    assert causes(setting.client.call("POST", CLAIMS, claim("c", selector=INVALID))) == [error]
    created(setting.client, CLAIMS, claim("c", selector={"matchLabels": {"a": "b"}}))
    change = {"spec": {"selector": {"matchLabels": None, **INVALID}}}
    setting.replace(f"{CLAIMS}/c", "/registry/persistentvolumeclaims/default/c", change)
    updated = setting.client.call("PATCH", f"{CLAIMS}/c", LABELLED, MERGE)
    assert (updated.status, updated.body["metadata"].get("labels")) == (200, {"a": "b"}), updated.message
    rejected = setting.client.call("PATCH", f"{CLAIMS}/c", {"spec": {"selector": OTHER}}, MERGE)
    assert [cause.partition("\n")[0] for cause in causes(rejected)] == [
        "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for "
        "bound claims"
    ]


def test_only_a_stored_claim_may_have_invalid_groups_of_data_sources(setting: Setting) -> None:
    source = {**SNAPSHOT, "apiGroup": "Not Valid"}
    error = f'spec.dataSourceRef.apiGroup: Invalid value: "Not Valid": {SUBDOMAIN}'
    rejected = causes(setting.client.call("POST", CLAIMS, claim("g", dataSourceRef=source)))
    assert rejected == [error.replace("dataSourceRef", "dataSource"), error]
    created(setting.client, CLAIMS, claim("g", dataSourceRef=SNAPSHOT))
    change = {"spec": {"dataSourceRef": source, "dataSource": source}}
    setting.replace(f"{CLAIMS}/g", "/registry/persistentvolumeclaims/default/g", change)
    updated = setting.client.call("PATCH", f"{CLAIMS}/g", LABELLED, MERGE)
    assert (updated.status, updated.body["metadata"].get("labels")) == (200, {"a": "b"}), updated.message


def test_only_a_stored_capacity_may_have_invalid_values_in_its_topology(setting: Setting) -> None:
    body = {"metadata": {"name": "c"}, "storageClassName": "s", "nodeTopology": INVALID}
    error = f'nodeTopology.matchExpressions[0].values[0]: Invalid value: "a b": {LABEL_VALUE}'
    assert causes(setting.client.call("POST", CAPACITIES, body)) == [error]
    created(setting.client, CAPACITIES, {**body, "nodeTopology": {"matchLabels": {"a": "b"}}})
    change = {"nodeTopology": {"matchLabels": None, **INVALID}}
    setting.replace(f"{CAPACITIES}/c", "/registry/csistoragecapacities/default/c", change)
    updated = setting.client.call("PATCH", f"{CAPACITIES}/c", {**LABELLED, "capacity": "1Gi"}, MERGE)
    assert (updated.status, updated.body["metadata"].get("labels")) == (200, {"a": "b"}), updated.message


def test_inline_volumes_have_no_node_affinity(setting: Setting) -> None:
    spec = volume("", [INVALID])["spec"]
    del spec["capacity"]
    source = {"inlineVolumeSpec": {**spec, "persistentVolumeReclaimPolicy": "Retain"}}
    body = {"metadata": {"name": "a"}, "spec": {"attacher": "a", "nodeName": "n", "source": source}}
    assert causes(setting.client.call("POST", ATTACHMENTS, body)) == [
        "spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes"
    ]
