"""Certificate requests of many attributes, extensions and names, and other parsers of PEM and ASN.1."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import orjson

from stall import der
from stall.case import BODY, Case
from stall.message import Message
from stall.setup import SPACE

_REQUESTS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests?dryRun=All"
_BUNDLES: Final = "/apis/certificates.k8s.io/v1/clustertrustbundles?dryRun=All"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All"
_KUBELET: Final = "kubernetes.io/kube-apiserver-client-kubelet"


def _post(name: str, path: str, body: Callable[[int], dict[str, Any]], who: str = "editor") -> Case:
    return Case(name, who, lambda n: Message("POST", path, body=orjson.dumps(body(n))), BODY)


def _request(name: str, pem: Callable[[int], bytes]) -> Case:
    def body(n: int) -> dict[str, Any]:
        request = base64.b64encode(pem(n)).decode()
        spec = {"request": request, "signerName": _KUBELET, "usages": ["client auth", "digital signature"]}
        return {"metadata": {"generateName": "a"}, "spec": spec}

    return _post(f"certificate request: {name}", _REQUESTS, body)


def _secret(name: str, certificate: Callable[[int], bytes]) -> Case:
    def body(n: int) -> dict[str, Any]:
        data = {"tls.crt": base64.b64encode(certificate(n)).decode(), "tls.key": ""}
        return {"metadata": {"generateName": "a"}, "type": "kubernetes.io/tls", "data": data}

    return _post(f"Secret: {name}", f"{SPACE}/secrets?dryRun=All", body)


def _bundle(name: str, pem: Callable[[int], bytes]) -> Case:
    return _post(
        f"trust bundle: {name}",
        _BUNDLES,
        lambda n: {"metadata": {"generateName": "a"}, "spec": {"trustBundle": pem(n).decode()}},
        "admin",
    )


def _webhook(n: int) -> dict[str, Any]:
    bundle = base64.b64encode(der.pem("CERTIFICATE", b"\x30\0") * n).decode()
    webhook = {
        "name": "a.b.c",
        "clientConfig": {"url": "https://a", "caBundle": bundle},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    return {"metadata": {"generateName": "a"}, "webhooks": [webhook]}


CASES: Final = [
    _request("attributes", lambda n: der.signing_request(der.attributes(n))),
    _request("extensions", lambda n: der.signing_request([der.extension_request(der.extensions(n))])),
    _request("alternative names", lambda n: der.signing_request([der.extension_request([der.alternative_names(n)])])),
    _request("organizations", lambda n: der.signing_request(subject=der.name(f"o{i}" for i in range(n)))),
    _request("empty blocks", lambda n: der.pem("CERTIFICATE REQUEST", b"") * n),
    _request("headers of a block", lambda n: b"-----BEGIN A-----\n" + b"a: b\n" * n + b"\n-----END A-----\n"),
    _secret("empty certificates", lambda n: der.pem("CERTIFICATE", b"") * n),
    _secret("blocks of other types", lambda n: der.pem("A", b"") * n),
    _bundle("empty certificates", lambda n: der.pem("CERTIFICATE", b"\x30\0") * n),
    _bundle("blocks of other types", lambda n: der.pem("A", b"") * n),
    _post("webhook: certificates of caBundle", _WEBHOOKS, _webhook, "admin"),
]
