"""Controllers that need no node: each behaves like upstream's of the same name."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from integration.core.conftest import NS, Core, v1
from support.waiting import eventually
from tetrapod.core.controllers.bootstrap_tokens import BootstrapSigner, TokenCleaner
from tetrapod.core.controllers.certificate_cleaners import PodCertificateRequestCleaner, SigningRequestCleaner
from tetrapod.core.controllers.legacy_tokens import LegacyTokenCleaner
from tetrapod.core.controllers.manager import Controller
from tetrapod.core.controllers.service_networks import ServiceNetworks
from tetrapod.generic.client.informer import Informer
from tetrapod.generic.server.controllers import canonical
from tetrapod.machinery.gvk import GroupVersionResource, Object
from tetrapod.machinery.status import StatusError
from tetrapod.machinery.timestamps import format_time, now

CIDRS = GroupVersionResource("networking.k8s.io", "v1", "servicecidrs")
ADDRESSES = GroupVersionResource("networking.k8s.io", "v1", "ipaddresses")
REQUESTS = GroupVersionResource("certificates.k8s.io", "v1", "certificatesigningrequests")


@asynccontextmanager
async def running(*controllers: Controller) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(controller.run()) for controller in controllers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_every_controller_has_an_upstream_name(core: Core) -> None:
    names = [controller.name for controller in core.service.controllers(Informer(core.client, v1("namespaces")))]
    assert len(names) == len(set(names)) > 12
    assert canonical(names) == tuple(names)


async def present(core: Core, gvr: GroupVersionResource, namespace: str, name: str) -> Object | None:
    try:
        return await core.client.get(gvr, namespace, name)
    except StatusError as error:
        assert error.code == 404
        return None


async def namespace(core: Core, name: str) -> None:
    await core.client.create(v1("namespaces"), "", {"metadata": {"name": name}})


async def token(core: Core, token_id: str, **data: str) -> None:
    data = {"token-id": token_id, "token-secret": "0123456789abcdef", **data}
    body = {
        "metadata": {"name": f"bootstrap-token-{token_id}"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": data,
    }
    await core.client.create(v1("secrets"), "kube-system", body)


async def test_expired_bootstrap_tokens_are_deleted(core: Core) -> None:
    await namespace(core, "kube-system")
    await token(core, "aaaaaa", expiration=format_time(now() - timedelta(hours=1)))
    await token(core, "bbbbbb", expiration=format_time(now() + timedelta(hours=1)))
    await token(core, "cccccc")
    await token(core, "dddddd", expiration="tomorrow")
    await token(core, "eeeeee", expiration=format_time(now() + timedelta(seconds=2)))
    async with running(TokenCleaner(core.client)):
        for name, gone in (("aaaaaa", True), ("dddddd", True), ("eeeeee", True), ("bbbbbb", False), ("cccccc", False)):
            get = partial(present, core, v1("secrets"), "kube-system", f"bootstrap-token-{name}")
            if gone:
                await eventually(get, lambda found: found is None)
            else:
                assert await get()


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
async def test_cluster_info_is_signed_by_permitted_tokens(core: Core) -> None:
    await namespace(core, "kube-system")
    await namespace(core, "kube-public")
    await token(core, "aaaaaa", **{"usage-bootstrap-signing": "true"})
    await token(core, "bbbbbb")
    info = {
        "metadata": {"name": "cluster-info"},
        "data": {"kubeconfig": "kind: Config\n", "jws-kubeconfig-zzzzzz": "old"},
    }
    await core.client.create(v1("configmaps"), "kube-public", info)

    async def data() -> dict[str, str]:
        return (await core.client.get(v1("configmaps"), "kube-public", "cluster-info"))["data"]  # type: ignore[no-any-return]

    async with running(BootstrapSigner(core.client)):
        found = await eventually(data, lambda data: "jws-kubeconfig-aaaaaa" in data)
        assert found.keys() == {"kubeconfig", "jws-kubeconfig-aaaaaa"}
        head, _, tail = found["jws-kubeconfig-aaaaaa"].partition("..")
        whole = f"{head}.{base64.urlsafe_b64encode(b'kind: Config' + bytes([10])).decode().rstrip('=')}.{tail}"
        assert jwt.get_unverified_header(whole) == {"alg": "HS256", "kid": "aaaaaa"}
        jwt.api_jws.decode(whole, "0123456789abcdef", algorithms=["HS256"])
        await core.client.delete(v1("secrets"), "kube-system", "bootstrap-token-aaaaaa")
        await eventually(data, lambda data: data == {"kubeconfig": "kind: Config\n"})


@pytest.mark.parametrize(
    ("status", "hours", "gone"),
    [
        ({}, 25, True),
        ({}, 23, False),
        ({"type": "Denied"}, 2, True),
        ({"type": "Failed"}, 2, True),
        ({"type": "Denied"}, 0.5, False),
        ({"type": "Approved"}, 2, False),
        ({"type": "Approved"}, 25, True),
        ({"type": "Approved", "certificate": "eA=="}, 2, True),
        ({"type": "Approved", "certificate": "eA=="}, 0.5, False),
    ],
)
def test_old_signing_requests_expire(status: dict[str, str], hours: float, gone: bool) -> None:
    then = format_time(now() - timedelta(hours=hours))
    found: Object = {"conditions": [{"type": status["type"], "lastUpdateTime": then}]} if status else {}
    if "certificate" in status:
        found["certificate"] = status["certificate"]
    request = {"metadata": {"name": "r", "creationTimestamp": then}, "status": found}
    assert SigningRequestCleaner(None).is_over(request, now()) is gone  # type: ignore[arg-type]


async def test_old_requests_are_deleted(core: Core) -> None:
    cleaner = SigningRequestCleaner(core.client, clock=lambda: now() + timedelta(hours=25))
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "someone")])
    asked = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(subject)
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    pem = asked.public_bytes(serialization.Encoding.PEM)
    request = {"request": base64.b64encode(pem).decode(), "signerName": "example.com/x", "usages": ["client auth"]}
    await core.client.create(REQUESTS, "", {"metadata": {"name": "r"}, "spec": request})
    await SigningRequestCleaner(core.client).clean()
    assert await present(core, REQUESTS, "", "r")
    await cleaner.clean()
    assert await present(core, REQUESTS, "", "r") is None
    await PodCertificateRequestCleaner(core.client).clean()


async def test_unused_tokens_are_marked_and_then_deleted(core: Core) -> None:
    await namespace(core, "kube-system")
    since = {
        "metadata": {"name": "kube-apiserver-legacy-service-account-token-tracking"},
        "data": {"since": now().strftime("%Y-%m-%d")},
    }
    await core.client.create(v1("configmaps"), "kube-system", since)
    annotations = {"kubernetes.io/service-account.name": "default"}
    for name in ("made-by-us", "made-by-you", "mounted"):
        await core.client.create(
            v1("secrets"),
            NS,
            {"metadata": {"name": name, "annotations": annotations}, "type": "kubernetes.io/service-account-token"},
        )
    await core.client.patch(
        v1("serviceaccounts"), NS, "default", {"secrets": [{"name": "made-by-us"}, {"name": "mounted"}]}
    )
    await core.pod("p", volumes=[{"name": "v", "secret": {"secretName": "mounted"}}])

    async def clean(days: int) -> None:
        await LegacyTokenCleaner(core.client, clock=lambda: now() + timedelta(days=days)).clean()

    async def labels(name: str) -> dict[str, str] | None:
        found = await present(core, v1("secrets"), NS, name)
        return None if found is None else found["metadata"].get("labels") or {}

    await clean(300)
    assert await labels("made-by-us") == {}
    await clean(400)
    assert "kubernetes.io/legacy-token-invalid-since" in (await labels("made-by-us") or {})
    await clean(401)
    assert await labels("made-by-us")
    await clean(800)
    assert await labels("made-by-us") is None
    assert await labels("made-by-you") == await labels("mounted") == {}


async def test_service_cidrs_are_protected_by_their_addresses(core: Core) -> None:
    await core.client.create(CIDRS, "", {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.77.0.0/24"]}})

    async def get() -> Object | None:
        return await present(core, CIDRS, "", "more")

    def has_condition(status: str, reason: str) -> Callable[[Object | None], bool]:
        return lambda cidr: (
            cidr is not None
            and any(
                (c["status"], c.get("reason")) == (status, reason)
                for c in (cidr.get("status") or {}).get("conditions") or ()
            )
        )

    async with running(ServiceNetworks(core.client, grace=0)):
        found = await eventually(get, has_condition("True", ""))
        assert found is not None
        assert found["metadata"]["finalizers"] == ["networking.k8s.io/service-cidr-finalizer"]
        labels = {
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
            "ipaddress.kubernetes.io/ip-family": "IPv4",
        }
        parent = {"resource": "services", "namespace": NS, "name": "s"}
        await core.client.create(
            ADDRESSES, "", {"metadata": {"name": "10.77.0.5", "labels": labels}, "spec": {"parentRef": parent}}
        )
        await core.client.delete(CIDRS, "", "more")
        await eventually(get, has_condition("False", "Terminating"))
        await core.client.delete(ADDRESSES, "", "10.77.0.5")
        await eventually(get, lambda found: found is None)
