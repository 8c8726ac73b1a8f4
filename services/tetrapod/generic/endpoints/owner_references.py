"""Removes duplicate owner references, with a warning.

Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go, dedupOwnerReferencesAndAddWarning
"""

from __future__ import annotations

import orjson

from tetrapod.machinery.gvk import Object

_TEXT = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)


def dedup_owner_references(obj: Object, warnings: list[str], *, after_mutation: bool = False) -> None:
    """Remove repeated owner references from `obj` in place; if there were any, append a text to `warnings`.

    Args:
        after_mutation: whether mutating admission has run; the text says so.
    """
    references = obj["metadata"].get("ownerReferences")
    if not references or len(references) < 2:
        return
    unique, known, uids = [], set(), []
    for reference in references:
        key = orjson.dumps(reference, option=orjson.OPT_SORT_KEYS)
        if key in known:
            uids.append(str(reference.get("uid", "")))
        else:
            known.add(key)
            unique.append(reference)
    if uids:
        obj["metadata"]["ownerReferences"] = unique
        when = " after mutating admission happens" if after_mutation else ""
        warnings.append(_TEXT.format(when, ", ".join(uids)))
