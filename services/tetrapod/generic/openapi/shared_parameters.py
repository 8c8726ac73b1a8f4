"""Parameters that several operations of a Swagger document share. Each is defined once and referenced by name.

A name ends in a hash of the parameter. Upstream hashes the parameter with its description, which may be missing here,
so the published hashes of the built-in parameters are a table. Some parameters have several variants that differ only
in their description; the path determines the variant.
Upstream: k8s.io/kube-openapi/pkg/builder/parameters.go
"""

from __future__ import annotations

import base64
from typing import Any, Final

import orjson

from tetrapod.machinery.gvk import Object

_UNSHARED: Final = frozenset({("query", "name"), ("path", "name"), ("query", "fieldValidation"), ("query", "dryRun")})
_GENERIC_BODY: Final = "#/definitions/io.k8s.apimachinery"
_SUFFIXES: Final[dict[str, str | dict[str, str]]] = {
    "allowWatchBookmarks": "HC2hJt-J",
    "body DeleteOptions": "2Y1dVQaQ",
    "body Patch": "78PwaGsr",
    "command": "Py3eQybp",
    "container": {"log": "1GeXxFDC", "attach": "_Q-EJ3nR", "": "i5dOmRiM"},
    "continue": "QfD61s0i",
    "fieldManager": {"patch": "7c6nTn1T", "": "Qy4HdaTW"},
    "fieldSelector": "xIcQKXFG",
    "follow": "9OIXh_2R",
    "force": "tOGGb0Yi",
    "gracePeriodSeconds": "-K5HaBOS",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "QbNkfIqj",
    "insecureSkipTLSVerifyBackend": "gM00jVbe",
    "labelSelector": "5Zw57w4C",
    "limit": "1NfNmdNH",
    "limitBytes": "zwd1RXuc",
    "namespace": "vgWSWtn3",
    "orphanDependents": "uRB25kX5",
    "path": {"pods": "oPbzgLUj", "services": "QCf0eosM", "": "rFDtV0x9", "in path": "z6Ciiujn"},
    "ports": "91KROJmm",
    "pretty": "tJGM1-ng",
    "previous": "1jxDPu3y",
    "propagationPolicy": "6jk3prlO",
    "resourceVersion": "5WAnf1kx",
    "resourceVersionMatch": "t8XhRHeC",
    "sendInitialEvents": "rLXlEK_k",
    "shardSelector": "Kgyki_3_",
    "sinceSeconds": "vE2NLdnP",
    "stderr": {"attach": "26jJhFUR", "": "W_1TNlWc"},
    "stdin": {"attach": "sEFnN3IS", "": "PSzNhyUC"},
    "stdout": {"attach": "005YMKE6", "": "-EZLRwV1"},
    "stream": "l-48cgXv",
    "tailLines": "9xQLWHMV",
    "timeoutSeconds": "yvYezaOC",
    "timestamps": "c17fW1w_",
    "tty": {"attach": "g7MlET_l", "": "s0flW37O"},
    "watch": "XNNPZGbK",
}


def share(path: str, item: Object, table: Object) -> None:
    """Replace the shared parameters of a Swagger path item by references, in place.

    Args:
        path: the API path. Parameters of one name can have several descriptions; the path decides which one applies.
        item: the path item; modified.
        table: the shared parameters by name; new ones are added.
    """
    parts = path.split("/")
    context = {*parts, "log" if parts[-1] == "log" else ""}
    for method, operation in item.items():
        if method == "parameters":
            item[method] = [_share(p, {*context}, table) for p in operation]
        elif "parameters" in operation:
            operation["parameters"] = [_share(p, {*context, method}, table) for p in operation["parameters"]]


def _share(parameter: Object, context: set[str], table: Object) -> Object:
    if (parameter["in"], parameter["name"]) in _UNSHARED:
        return parameter
    reference = parameter.get("schema", {}).get("$ref", "")
    if parameter["in"] == "body" and not reference.startswith(_GENERIC_BODY):
        return parameter
    name = f"{parameter['name']}-{_suffix(parameter, context)}"
    table.setdefault(name, parameter)
    return {"$ref": f"#/parameters/{name}"}


def _suffix(parameter: Object, context: set[str]) -> str:
    name = parameter["name"]
    if parameter["in"] == "body":
        name = f"body {parameter['schema']['$ref'].rpartition('.')[2]}"
    known: Any = _SUFFIXES.get(name)
    if isinstance(known, dict):
        if parameter["in"] == "path":
            return str(known["in path"])
        return next((suffix for key, suffix in known.items() if key and key in context), str(known[""]))
    return known or _hash(parameter)


def _hash(parameter: Object) -> str:
    """Return the suffix that makes the name of a shared parameter unique, for a parameter without a fixed suffix.

    As upstream, it is the first six bytes of the parameter's FNV-1 hash in base64.
    """
    value = 0xCBF29CE484222325
    for byte in orjson.dumps(parameter, option=orjson.OPT_SORT_KEYS):
        value = (value * 0x100000001B3) % (1 << 64) ^ byte
    return base64.urlsafe_b64encode(value.to_bytes(8, "big")[:6]).decode()
