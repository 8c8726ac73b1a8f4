"""IP families of Services on clusters of one and of two IP families, over HTTP.

The cases are those of upstream's test/integration/dualstack, with further updates and the IPAddress objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from support.https_client import HttpsClient
from tetrapod.testing import ApiError, Server

V4, V6 = "10.0.0.0/16", "2001:db8:1::/108"
CLUSTERS: Final = {"v4": V4, "v6": V6, "v4-v6": f"{V4},{V6}", "v6-v4": f"{V6},{V4}"}
FAMILIES: Final = {"4": "IPv4", "6": "IPv6"}
LABEL: Final = "ipaddress.kubernetes.io/ip-family"
SINGLE, PREFER, REQUIRE = "SingleStack", "PreferDualStack", "RequireDualStack"


@pytest.fixture(scope="module", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[tuple[str, Server]]:
    with Server([f"--service-cluster-ip-range={CLUSTERS[request.param]}"]) as server:
        yield request.param, server


@pytest.fixture(scope="module")
def dual() -> Iterator[Server]:
    with Server([f"--service-cluster-ip-range={CLUSTERS['v4-v6']}"]) as server:
        yield server


def families(short: str) -> list[str]:
    return [FAMILIES[digit] for digit in short]


def families_of_addresses(addresses: list[str]) -> list[str]:
    return ["IPv6" if ":" in address else "IPv4" for address in addresses]


def service(name: str, **spec: Any) -> dict[str, Any]:
    given = {key: value for key, value in spec.items() if value}
    whole = {"ports": [{"port": 443}], **given}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": whole}


def addresses_of(server: Server, name: str) -> dict[str, str]:
    """Return the IP families of the IPAddresses of a service by their names."""
    items = server.client.list("networking.k8s.io/v1", "IPAddress")
    parent = {"resource": "services", "namespace": "default", "name": name}
    return {
        item["metadata"]["name"]: item["metadata"]["labels"][LABEL]
        for item in items
        if item["spec"]["parentRef"] == parent
    }


def spec_of(server: Server, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = server.client.get("v1", "Service", name)["spec"]
    return spec


def change(server: Server, name: str, **spec: Any) -> dict[str, Any]:
    changed: dict[str, Any] = server.client.patch("v1", "Service", name, {"spec": spec})["spec"]
    return changed


def rejection(server: Server, name: str, **spec: Any) -> str:
    with pytest.raises(ApiError) as caught:
        change(server, name, **spec)
    assert caught.value.code == 422
    return str(caught.value.status["message"]).partition(" is invalid: ")[2]


# ipFamilyPolicy, ipFamilies, and the families of the new service on each cluster; "" if it is rejected
CREATED: Final = [
    ("", "", "4", "6", "4", "6"),
    (SINGLE, "", "4", "6", "4", "6"),
    (PREFER, "", "4", "6", "46", "64"),
    (REQUIRE, "", "", "", "46", "64"),
    ("", "4", "4", "", "4", "4"),
    (SINGLE, "4", "4", "", "4", "4"),
    (PREFER, "4", "4", "", "46", "46"),
    (REQUIRE, "4", "", "", "46", "46"),
    ("", "6", "", "6", "6", "6"),
    (SINGLE, "6", "", "6", "6", "6"),
    (PREFER, "6", "", "6", "64", "64"),
    (REQUIRE, "6", "", "", "64", "64"),
    ("", "46", "", "", "", ""),
    (SINGLE, "46", "", "", "", ""),
    (PREFER, "46", "", "", "46", "46"),
    (REQUIRE, "46", "", "", "46", "46"),
    ("", "64", "", "", "", ""),
    (SINGLE, "64", "", "", "", ""),
    (PREFER, "64", "", "", "64", "64"),
    (REQUIRE, "64", "", "", "64", "64"),
]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize(("policy", "given", "v4", "v6", "v4_v6", "v6_v4"), CREATED)
def test_new_service_gets_an_address_of_each_family(
    cluster: tuple[str, Server], policy: str, given: str, v4: str, v6: str, v4_v6: str, v6_v4: str, dry_run: bool
) -> None:
    name, server = cluster
    wanted = dict(zip(CLUSTERS, (v4, v6, v4_v6, v6_v4), strict=True))[name]
    body = service("s", ipFamilyPolicy=policy, ipFamilies=families(given))
    path = "/api/v1/namespaces/default/services" + ("?dryRun=All" if dry_run else "")
    if not wanted:
        with pytest.raises(ApiError) as caught:
            server.client.request("POST", path, body)
        assert caught.value.code == 422
        assert not addresses_of(server, "s")
        return
    spec = server.client.request("POST", path, body)["spec"]
    assert spec["ipFamilyPolicy"] == (policy or SINGLE)
    assert spec["ipFamilies"] == families(wanted) == families_of_addresses(spec["clusterIPs"])
    assert spec["clusterIP"] == spec["clusterIPs"][0]
    if dry_run:
        placeholders = {"IPv4": "10.0.0.0", "IPv6": "2001:db8:1::"}
        assert spec["clusterIPs"] == [placeholders[family] for family in spec["ipFamilies"]]
        assert not addresses_of(server, "s")
        return
    assert addresses_of(server, "s") == dict(zip(spec["clusterIPs"], spec["ipFamilies"], strict=True))
    server.client.delete("v1", "Service", "s")
    assert not addresses_of(server, "s")


@pytest.mark.parametrize("selector", [{}, {"a": "b"}])
@pytest.mark.parametrize(("policy", "given", "v4", "v6", "v4_v6", "v6_v4"), CREATED)
def test_new_headless_service_gets_families_only(
    cluster: tuple[str, Server],
    policy: str,
    given: str,
    v4: str,
    v6: str,
    v4_v6: str,
    v6_v4: str,
    selector: dict[str, str],
) -> None:
    name, server = cluster
    wanted = dict(zip(CLUSTERS, (v4, v6, v4_v6, v6_v4), strict=True))[name]
    if not selector:  # users manage the endpoints, so any families are valid
        policy = policy or REQUIRE
        primary = given or name[1]
        both = primary if len(primary) == 2 else primary + ("6" if primary == "4" else "4")
        wanted = both if policy != SINGLE else primary if len(primary) == 1 else ""
    body = service("h", clusterIP="None", selector=selector, ipFamilyPolicy=policy, ipFamilies=families(given))
    if not wanted:
        with pytest.raises(ApiError):
            server.client.create(body)
        return
    spec = server.client.create(body)["spec"]
    server.client.delete("v1", "Service", "h")
    assert spec["clusterIPs"] == ["None"]
    assert spec["ipFamilies"] == families(wanted)
    assert spec["ipFamilyPolicy"] == (policy or SINGLE)


@pytest.mark.parametrize(
    ("policy", "addresses", "given", "wanted"),
    [
        ("", ["10.0.7.7"], "", "4"),
        ("", ["2001:db8:1::77"], "", "6"),
        ("", ["10.0.7.7", "2001:db8:1::77"], "", ""),
        ("", ["10.0.7.7", "2001:db8:1::77"], "46", ""),
        (PREFER, ["10.0.7.7", "2001:db8:1::77"], "", "46"),
        (REQUIRE, ["2001:db8:1::77", "10.0.7.7"], "", "64"),
        (REQUIRE, ["2001:db8:1::77"], "", "64"),
        (REQUIRE, ["2001:db8:1::77"], "46", ""),
        (REQUIRE, ["10.0.7.7", "10.0.7.8"], "", ""),
        (REQUIRE, ["10.0.7.7", "2001:db8:2::1"], "", ""),
    ],
)
def test_requested_addresses_decide_the_families(
    dual: Server, policy: str, addresses: list[str], given: str, wanted: str
) -> None:
    body = service("r", clusterIP=addresses[0], clusterIPs=addresses, ipFamilyPolicy=policy, ipFamilies=families(given))
    if not wanted:
        with pytest.raises(ApiError):
            dual.client.create(body)
        assert not addresses_of(dual, "r")
        return
    spec = dual.client.create(body)["spec"]
    assert addresses_of(dual, "r") == dict(zip(spec["clusterIPs"], spec["ipFamilies"], strict=True))
    dual.client.delete("v1", "Service", "r")
    assert spec["clusterIPs"][: len(addresses)] == addresses
    assert spec["ipFamilies"] == families(wanted) == families_of_addresses(spec["clusterIPs"])


def test_rejected_families_have_upstreams_texts(cluster: tuple[str, Server]) -> None:
    name, server = cluster
    bodies = {
        "policy": service("x", ipFamilyPolicy=REQUIRE),
        "family": service("x", ipFamilies=["IPv4" if name == "v6" else "IPv6"]),
        "address": service("x", clusterIP="10.0.0.9" if name == "v6" else "2001:db8:1::9"),
        "single": service("x", ipFamilyPolicy=SINGLE, ipFamilies=["IPv4", "IPv6"]),
    }
    messages = {}
    for case, body in bodies.items():
        try:
            server.client.create(body)
            server.client.delete("v1", "Service", "x")
        except ApiError as error:
            messages[case] = error.status["message"].removeprefix('Service "x" is invalid: ')
    single = (
        "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when "
        "multiple IP families are specified"
    )
    if "-" in name:
        assert messages == {"single": single}
        return
    other, address = ("IPv4", "10.0.0.9") if name == "v6" else ("IPv6", "2001:db8:1::9")
    assert messages == {
        "policy": 'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for '
        "dual-stack services",
        "family": f'spec.ipFamilies[0]: Invalid value: "{other}": not configured on this cluster',
        "address": f'spec.clusterIPs[0]: Invalid value: ["{address}"]: {other} is not configured on this cluster',
        "single": single,
    }


def test_kubernetes_service_and_default_service_cidr_follow_the_flag(cluster: tuple[str, Server]) -> None:
    name, server = cluster
    spec = spec_of(server, "kubernetes")
    primary = families(name[1])
    first = {"IPv4": "10.0.0.1", "IPv6": "2001:db8:1::1"}[primary[0]]
    assert (spec["clusterIPs"], spec["ipFamilies"], spec["ipFamilyPolicy"]) == ([first], primary, SINGLE)
    cidr = server.client.get("networking.k8s.io/v1", "ServiceCIDR", "kubernetes")
    assert cidr["spec"]["cidrs"] == CLUSTERS[name].split(",")
    assert [(c["type"], c["status"]) for c in cidr["status"]["conditions"]] == [("Ready", "True")]


def test_service_is_upgraded_and_downgraded(dual: Server) -> None:
    first = dual.client.create(service("u"))["spec"]["clusterIP"]
    both = change(dual, "u", ipFamilyPolicy=REQUIRE)
    assert both["ipFamilies"] == ["IPv4", "IPv6"] == families_of_addresses(both["clusterIPs"])
    assert both["clusterIP"] == both["clusterIPs"][0] == first
    assert set(addresses_of(dual, "u")) == set(both["clusterIPs"])
    # with the secondary address and family removed
    one = change(dual, "u", ipFamilyPolicy=SINGLE, clusterIPs=[first], ipFamilies=["IPv4"])
    assert (one["clusterIPs"], one["ipFamilies"]) == ([first], ["IPv4"])
    assert set(addresses_of(dual, "u")) == {first}
    # and with the policy alone
    both = change(dual, "u", ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy=PREFER)
    assert len(both["clusterIPs"]) == 2
    one = change(dual, "u", ipFamilyPolicy=SINGLE)
    assert (one["clusterIPs"], one["ipFamilies"]) == ([first], ["IPv4"])
    assert set(addresses_of(dual, "u")) == {first}
    # with a requested secondary address
    both = change(dual, "u", ipFamilyPolicy=REQUIRE, clusterIPs=[first, "2001:db8:1::1234"])
    assert both["clusterIPs"] == [first, "2001:db8:1::1234"]
    dual.client.delete("v1", "Service", "u")
    assert not addresses_of(dual, "u")


def test_dry_run_of_an_upgrade_allocates_and_releases_nothing(dual: Server) -> None:
    first = dual.client.create(service("d"))["spec"]["clusterIP"]
    path = "/api/v1/namespaces/default/services/d?dryRun=All"
    merge = "application/merge-patch+json"
    spec = dual.client.request("PATCH", path, {"spec": {"ipFamilyPolicy": REQUIRE}}, merge)["spec"]
    assert spec["clusterIPs"] == [first, "2001:db8:1::"]
    assert set(addresses_of(dual, "d")) == {first}
    both = change(dual, "d", ipFamilyPolicy=REQUIRE)["clusterIPs"]
    spec = dual.client.request("PATCH", path, {"spec": {"ipFamilyPolicy": SINGLE}}, merge)["spec"]
    assert spec["clusterIPs"] == [first]
    assert set(addresses_of(dual, "d")) == set(both)
    dual.client.request("DELETE", path)
    assert set(addresses_of(dual, "d")) == set(both)
    dual.client.delete("v1", "Service", "d")
    assert not addresses_of(dual, "d")


def test_failed_writes_release_what_they_allocated(dual: Server) -> None:
    dual.client.create(service("f"))
    taken = spec_of(dual, "kubernetes")["clusterIP"]
    before = addresses_of(dual, "f")
    assert rejection(dual, "f", ipFamilyPolicy=REQUIRE, sessionAffinity="Forever")
    assert addresses_of(dual, "f") == before
    with pytest.raises(ApiError, match="provided IP is already allocated"):
        dual.client.create(
            service(
                "g",
                ipFamilyPolicy=REQUIRE,
                ipFamilies=["IPv6", "IPv4"],
                clusterIP="2001:db8:1::5",
                clusterIPs=["2001:db8:1::5", taken],
            )
        )
    assert not addresses_of(dual, "g")
    dual.client.delete("v1", "Service", "f")


def test_invalid_changes_have_upstreams_texts(dual: Server) -> None:
    v4, v6 = dual.client.create(service("i", ipFamilyPolicy=REQUIRE))["spec"]["clusterIPs"]
    release = (
        "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the secondary "
    )
    assert rejection(dual, "i", clusterIPs=[v4]) == release + "cluster IP"
    assert rejection(dual, "i", clusterIP="10.0.0.77") == release + "cluster IP"
    assert rejection(dual, "i", ipFamilies=["IPv4"]) == release + "IP family"
    assert rejection(dual, "i", clusterIP="10.0.0.77", clusterIPs=[v4, "2001:db8:1::77"]) == (
        f'spec.clusterIPs: Invalid value: ["{v4}","2001:db8:1::77"]: first value must match `clusterIP`'
    )
    assert "expected an IPv6 value as indicated by `ipFamilies[0]`" in rejection(dual, "i", ipFamilies=["IPv6", "IPv4"])
    assert "may not change once set" in rejection(
        dual, "i", clusterIP=v6, clusterIPs=[v6, v4], ipFamilies=["IPv6", "IPv4"]
    )
    assert "the provided network does not match the current range" in rejection(
        dual,
        dual.client.create(service("j"))["metadata"]["name"],
        ipFamilyPolicy=REQUIRE,
        clusterIPs=[spec_of(dual, "j")["clusterIP"], "2001:db8:9::9"],
    )
    for name in ("i", "j"):
        dual.client.delete("v1", "Service", name)
        assert not addresses_of(dual, name)


def test_external_name_releases_both_addresses(dual: Server) -> None:
    dual.client.create(service("e", ipFamilyPolicy=REQUIRE))
    external = change(dual, "e", type="ExternalName", externalName="something.somewhere")
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & external.keys()
    assert not addresses_of(dual, "e")
    back = change(dual, "e", type="ClusterIP", externalName=None, ipFamilyPolicy=PREFER)
    assert back["ipFamilies"] == ["IPv4", "IPv6"] == families_of_addresses(back["clusterIPs"])
    assert set(addresses_of(dual, "e")) == set(back["clusterIPs"])
    # an old client clears clusterIP only
    cleared = {**spec_of(dual, "e"), "type": "ExternalName", "externalName": "a.b", "clusterIP": ""}
    dual.client.update({**service("e"), "spec": cleared})
    assert not {"clusterIP", "clusterIPs", "ipFamilies"} & spec_of(dual, "e").keys()
    dual.client.delete("v1", "Service", "e")


def test_delete_succeeds_although_the_release_of_an_address_is_rejected(dual: Server) -> None:
    admission = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "keep"}}
    rule = {
        "apiGroups": ["networking.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["DELETE"],
        "resources": ["ipaddresses"],
    }
    validation = {"expression": "!oldObject.metadata.name.startsWith('10.')"}
    dual.client.create(
        {
            **admission,
            "kind": "ValidatingAdmissionPolicy",
            "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]},
        }
    )
    dual.client.create(
        {
            **admission,
            "kind": "ValidatingAdmissionPolicyBinding",
            "spec": {"policyName": "keep", "validationActions": ["Deny"]},
        }
    )
    client = HttpsClient(dual.kubeconfig)
    probe = {"resource": "services", "namespace": "default", "name": "probe"}
    address = {"kind": "IPAddress", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "10.0.0.99"}}
    dual.client.create({**address, "spec": {"parentRef": probe}})
    path = "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.99?dryRun=All"
    client.until(lambda reply: reply.status == 422, "DELETE", path)  # the policy has its effect
    port = [{"port": 80, "nodePort": 32123}]
    dual.client.create(service("k", ipFamilyPolicy=REQUIRE, type="NodePort", ports=port))
    try:
        assert client.call("DELETE", "/api/v1/namespaces/default/services/k").status == 200
        assert list(addresses_of(dual, "k").values()) == ["IPv4"]
        dual.client.create(service("l", type="NodePort", ports=port))
    finally:
        dual.client.delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "keep")
        dual.client.delete("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "keep")
    dual.client.delete("v1", "Service", "l")


def test_service_keeps_its_families_when_other_fields_change(dual: Server) -> None:
    both = dual.client.create(service("p", ipFamilyPolicy=PREFER))["spec"]
    changed = change(dual, "p", selector={"foo": "bar"})
    assert all(changed[key] == both[key] for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"))
    typed = change(dual, "p", type="LoadBalancer", externalTrafficPolicy="Local")
    assert typed["clusterIPs"] == both["clusterIPs"]
    assert typed["healthCheckNodePort"]
    # a client that knows neither clusterIPs nor families
    old = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "clusterIP": both["clusterIP"]}
    put = dual.client.update(service("p", **old))["spec"]
    assert all(put[key] == typed[key] for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"))
    dual.client.delete("v1", "Service", "p")


def test_headless_service_becomes_an_external_name(dual: Server) -> None:
    dual.client.create(service("c", clusterIP="None", selector={"foo": "bar"}, ipFamilyPolicy=REQUIRE))
    patch = {"spec": {"type": "ExternalName", "externalName": "foo.bar"}}
    spec = dual.client.patch("v1", "Service", "c", patch, type="strategic")["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & spec.keys()
    dual.client.delete("v1", "Service", "c")


def test_metrics_count_addresses_of_each_network(dual: Server) -> None:
    metrics = HttpsClient(dual.kubeconfig)

    def counted(metric: str, cidr: str, **labels: str) -> float:
        text = f'kube_apiserver_clusterip_allocator_{metric}{{cidr="{cidr}"'
        text += "".join(f',{key}="{value}"' for key, value in labels.items()) + "} "
        lines = metrics.call("GET", "/metrics").body.splitlines()
        return next((float(line.removeprefix(text)) for line in lines if line.startswith(text)), 0.0)

    before = {cidr: counted("allocation_total", cidr, scope="dynamic") for cidr in (V4, V6)}
    dual.client.create(service("m", ipFamilyPolicy=REQUIRE))
    after = {cidr: counted("allocation_total", cidr, scope="dynamic") for cidr in (V4, V6)}
    assert {cidr: after[cidr] - before[cidr] for cidr in after} == {V4: 1, V6: 1}
    assert counted("available_ips", V6) + counted("allocated_ips", V6) == 2**20 - 1
    dual.client.delete("v1", "Service", "m")
