"""Tests of the parts of tests/cluster that start nothing: images, files of nodes, records of processes."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import tarfile
from pathlib import Path
from typing import Any

from cluster import addons, node_files
from cluster.archives import Image, Layer, write_archive, write_images
from cluster.image_store import digest
from cluster.nodes import plan_of, ready
from cluster.processes import Processes
from cluster.settings import DNS, HOST, NODES, PODS, PROXIES, SERVICES, Paths
from tetrapod.kube_proxy.configuration_file import read
from tetrapod.kube_proxy.sysctls import Conntrack
from tetrapod.kube_proxy.validation import check


def base(layer: Layer) -> None:
    layer.directory("tmp", 0o1777)
    layer.content("etc/passwd", b"root:x:0:0::/:/bin/sh\n")


def program(layer: Layer) -> None:
    layer.content("program", b"#!/bin/sh\n", 0o755)
    layer.link("alias", "program")


IMAGES = (
    Image(("registry.example/base:1", "registry.example/base:latest"), (base,), {"Cmd": ["sh"]}),
    Image(("registry.example/program:1",), (base, program), {"Entrypoint": ["/program"], "Env": ["A=1"]}),
)


def contents(directory: Path) -> dict[str, bytes]:
    """Return the files of an archive of the images."""
    write_images(directory, IMAGES)
    archive = directory.with_suffix(".tar")
    write_archive(archive, directory)
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def test_an_archive_has_a_shared_layer_once_and_names_layers_by_their_digest(tmp_path: Path) -> None:
    files = contents(tmp_path / "images")
    manifests = json.loads(files.pop("manifest.json"))
    assert [manifest["RepoTags"] for manifest in manifests] == [list(image.names) for image in IMAGES]
    (shared,), (first, second) = (manifest["Layers"] for manifest in manifests)
    assert first == shared != second
    assert set(files) == {shared, second, *(manifest["Config"] for manifest in manifests)}
    for name in (shared, second):
        assert name == f"{hashlib.sha256(files[name]).hexdigest()}.tar"
    config = json.loads(files[manifests[1]["Config"]])
    assert config["rootfs"]["diff_ids"] == [f"sha256:{name.removesuffix('.tar')}" for name in (shared, second)]
    assert config["config"] == {"Entrypoint": ["/program"], "Env": ["A=1"]}


def test_a_layer_keeps_modes_and_links_and_belongs_to_root(tmp_path: Path) -> None:
    files = contents(tmp_path / "images")
    layers = json.loads(files["manifest.json"])[1]["Layers"]
    entries: dict[str, tarfile.TarInfo] = {}
    for name in layers:
        (tmp_path / name).write_bytes(files[name])
        with tarfile.open(tmp_path / name) as tar:
            entries |= {member.name: member for member in tar}
    assert {name: oct(entry.mode) for name, entry in entries.items()} == {
        "tmp": "0o1777",
        "etc/passwd": "0o644",
        "program": "0o755",
        "alias": "0o777",
    }
    assert entries["alias"].linkname == "program"
    assert {(entry.uid, entry.gid) for entry in entries.values()} == {(0, 0)}


def test_equal_images_make_equal_archives_of_layers(tmp_path: Path) -> None:
    first, second = (contents(tmp_path / name) for name in ("first", "second"))
    assert first == second


def test_the_digest_of_images_changes_with_code_and_with_programs(tmp_path: Path) -> None:
    code, built = tmp_path / "images.py", tmp_path / "program"
    code.write_text("a")
    built.write_text("a")
    before = digest([code, built])
    os.utime(code, (1, 1))
    assert digest([code, built]) == before  # a checkout sets times
    os.utime(built, (1, 1))
    assert digest([code, built]) != before
    after = digest([code, built])
    code.write_text("b")
    assert digest([code, built]) != after


def test_addresses_of_nodes_pods_and_services_do_not_overlap() -> None:
    nodes = ipaddress.ip_network(f"{HOST}/24", strict=False)
    pods, services = ipaddress.ip_network(PODS), ipaddress.ip_network(SERVICES)
    assert not nodes.overlaps(pods)
    assert not nodes.overlaps(services)
    assert not pods.overlaps(services)
    assert ipaddress.ip_address(DNS) in services
    assert len({node.address for node in NODES} | {HOST}) == len(NODES) + 1
    for node in NODES:
        assert ipaddress.ip_address(node.address) in nodes
        assert ipaddress.ip_network(node.pods).subnet_of(pods)  # type: ignore[arg-type]


def test_files_of_a_node_name_its_own_pods_and_control_group(tmp_path: Path) -> None:
    first, second = NODES
    for node in NODES:
        node_files.write_files(tmp_path / node.name, node)
    network = json.loads((tmp_path / second.name / "network/10-bridge.conflist").read_text())
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": second.pods}]]
    groups = [json.loads((tmp_path / node.name / "kubelet.yaml").read_text())["cgroupRoot"] for node in NODES]
    assert groups == [f"/{first.control_group}", f"/{second.control_group}"]
    proxy = json.loads((tmp_path / second.name / "kube-proxy.yaml").read_text())
    assert proxy["hostnameOverride"] == second.name


def test_containerd_may_lower_oom_scores_only_where_the_machine_allows_it() -> None:
    assert "restrict_oom_score_adj = true" in node_files.containerd(restricted=True)
    assert "restrict_oom_score_adj = false" in node_files.containerd(restricted=False)


def test_a_node_is_ready_by_its_condition_only() -> None:
    def node(status: str) -> Any:
        return {
            "status": {"conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": status}]}
        }

    assert ready(node("True"))
    assert not ready(node("Unknown"))
    assert not ready({"metadata": {}})


def test_objects_of_coredns_have_the_address_that_kubelets_give_to_pods() -> None:
    objects = {obj["kind"]: obj for obj in addons.objects() if obj["metadata"].get("namespace") == "kube-system"}
    kubelet = node_files.kubelet(NODES[0])
    assert kubelet["clusterDNS"] == [objects["Service"]["spec"]["clusterIP"]]
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("registry.k8s.io/coredns/coredns:")


def test_objects_of_add_ons_have_paths_of_their_collections() -> None:
    paths = {addons.path(obj) for obj in addons.objects()}
    assert "/api/v1/namespaces" in paths
    assert "/apis/storage.k8s.io/v1/storageclasses" in paths
    assert "/apis/apps/v1/namespaces/local-path-storage/deployments" in paths


def test_a_record_of_a_process_with_another_start_time_counts_as_ended(tmp_path: Path) -> None:
    processes = Processes(tmp_path, tmp_path)
    record = tmp_path / "server.json"
    record.write_text(json.dumps({"pid": os.getpid(), "started": "1"}))
    assert processes.names() == ["server"]
    assert processes.pid("server") is None
    processes.stop("server")  # signals nothing
    assert not record.exists()


def test_a_plan_has_either_proxy_with_the_same_configuration(tmp_path: Path) -> None:
    plans = [plan_of(Paths(tmp_path), NODES[0], proxy) for proxy in PROXIES]
    stock, tetrapod = ([program for program in plan["programs"] if program["name"] == "kube-proxy"] for plan in plans)
    assert [len(found) for found in (stock, tetrapod)] == [1, 1]
    assert stock[0]["argv"][1:] == tetrapod[0]["argv"][-2:]
    assert stock[0]["argv"][0].endswith("/kube-proxy")
    assert tetrapod[0]["argv"][-5:-2] == ["-m", "tetrapod.cli.main", "proxy"]
    for mounted in ("python/bin/python", "services/tetrapod/cli/main.py"):
        name, _, rest = mounted.partition("/")
        assert (Path(plans[1]["mounts"][name]) / rest).exists()


def test_tetrapod_proxy_accepts_the_configuration_of_a_node(tmp_path: Path) -> None:
    file = tmp_path / "kube-proxy.yaml"
    file.write_text(json.dumps(node_files.kube_proxy(NODES[0])))
    configuration = read(str(file)).completed()
    check(configuration)
    assert configuration.hostname_override == NODES[0].name
    assert configuration.cluster_cidrs == (PODS,)
    assert configuration.conntrack == Conntrack(max_per_core=0)
