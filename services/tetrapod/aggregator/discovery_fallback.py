"""The aggregated form of a classic APIResourceList (upstream: endpoints.ConvertGroupVersionIntoToDiscovery). Pure."""

from __future__ import annotations

from tetrapod.machinery.gvk import GroupVersion, Object


def from_resource_list(gv: GroupVersion, document: Object) -> Object:
    """One version document; subresources are put below their resource, which is made where it is missing."""
    resources: dict[str, Object] = {}
    for entry in document.get("resources") or []:
        name, slash, subresource = entry["name"].partition("/")
        scope = "Namespaced" if entry.get("namespaced") else "Cluster"
        if not slash:
            resources.setdefault(name, {}).update(_resource(gv, entry, scope))
            continue
        parent = resources.setdefault(name, {"resource": name, "responseKind": None, "scope": scope})
        kind = {"subresource": subresource, "responseKind": _kind(gv, entry), "verbs": entry.get("verbs") or []}
        parent.setdefault("subresources", []).append(kind)
    found: Object = {"version": gv.version}
    if resources:
        found["resources"] = list(resources.values())
    return found | {"freshness": "Current"}


def _resource(gv: GroupVersion, entry: Object, scope: str) -> Object:
    resource: Object = {
        "resource": entry["name"],
        "responseKind": _kind(gv, entry),
        "scope": scope,
        "singularResource": entry.get("singularName", ""),
        "verbs": entry.get("verbs") or [],
    }
    for field in ("shortNames", "categories"):
        if entry.get(field):
            resource[field] = entry[field]
    return resource


def _kind(gv: GroupVersion, entry: Object) -> Object:
    return {"group": entry.get("group") or gv.group, "version": entry.get("version") or gv.version, "kind": entry["kind"]}
