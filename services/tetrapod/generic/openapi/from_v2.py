"""The conversion of Swagger 2.0 documents to OpenAPI v3, for API servers that serve only the former.

Outside of schemas, keywords that the conversion does not handle are left out of the result. Unlike upstream's, it
resolves references to shared parameters, which would lead nowhere in the result.

Upstream: k8s.io/kube-openapi/pkg/openapiconv/convert.go; pkg/builder3/util/util.go, WrapRefs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tetrapod.machinery.gvk import Object

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_DEFINITIONS: Final = "#/definitions/"
_SCHEMAS: Final = "#/components/schemas/"
_SHARED_PARAMETERS: Final = "#/parameters/"
_RESPONSES: Final = "#/responses/"
_OPERATION: Final = ("description", "externalDocs", "tags", "summary", "deprecated", "operationId")
_PARAMETER: Final = ("name", "description", "in", "required", "allowEmptyValue")


def v3_of(document: Object) -> Object:
    """Return a Swagger 2.0 document as a new OpenAPI v3 document. Without `info` it must at least have `paths`.

    Raises:
        AttributeError, KeyError, RecursionError, TypeError: it is malformed.
    """
    shared = document.get("parameters") or {}
    paths = document.get("paths") or {}
    converted: Object = {
        "openapi": "3.0.0",
        "info": document.get("info", {}) if "paths" in document else document["info"],
        "paths": {path: _path_item(item, shared) for path, item in paths.items() if path.startswith("/")},
    }
    components: Object = {}
    if schemas := document.get("definitions"):
        components["schemas"] = {name: schema_of_v2(schema) for name, schema in schemas.items()}
    if schemes := document.get("securityDefinitions"):
        components["securitySchemes"] = {name: _security_scheme(scheme) for name, scheme in schemes.items()}
    if responses := document.get("responses"):
        produces = document.get("produces") or ()
        components["responses"] = {name: _response(response, produces) for name, response in responses.items()}
    if components:
        converted["components"] = components
    if "externalDocs" in document:
        converted["externalDocs"] = document["externalDocs"]
    return converted


def schema_of_v2(schema: Object) -> Object:
    """Return a v2 schema as a new v3 schema.

    A reference beside other keywords becomes the only member of `allOf`, because a v3 reference has no siblings.
    """
    converted = dict(schema)
    if isinstance(reference := schema.get("$ref"), str):
        _, prefix, name = reference.partition(_DEFINITIONS)
        converted["$ref"] = _SCHEMAS + name if prefix else reference
        if len(converted) > 1:
            converted["allOf"] = [{"$ref": converted.pop("$ref")}]
    if "properties" in schema:
        converted["properties"] = {name: schema_of_v2(child) for name, child in schema["properties"].items()}
    for keyword in ("items", "additionalProperties", "additionalItems"):
        value = schema.get(keyword)
        if isinstance(value, dict):
            converted[keyword] = schema_of_v2(value)
        elif isinstance(value, list):
            converted[keyword] = [schema_of_v2(child) for child in value]
    return converted


def _extensions(item: Object) -> Object:
    return {key: value for key, value in item.items() if key.startswith("x-")}


def _path_item(item: Object, shared: Mapping[str, Object]) -> Object:
    converted = {key: item[key] for key in ("$ref",) if key in item} | _extensions(item)
    for method in _METHODS:
        if method in item:
            converted[method] = _operation(item[method], shared)
    if item.get("parameters"):
        converted["parameters"] = [_parameter(parameter, shared) for parameter in item["parameters"]]
    return converted


def _operation(operation: Object, shared: Mapping[str, Object]) -> Object:
    converted = {key: operation[key] for key in _OPERATION if key in operation} | _extensions(operation)
    parameters = []
    for parameter in operation.get("parameters") or ():
        resolved = _resolved(parameter, shared)
        if resolved.get("name") == "body" and "schema" in resolved:
            content = _content(resolved["schema"], operation.get("consumes") or ())
            converted["requestBody"] = {"content": content} if content else {}
        else:
            parameters.append(_parameter(resolved, shared))
    if parameters:
        converted["parameters"] = parameters
    produces = operation.get("produces") or ()
    converted["responses"] = {
        code: response if code.startswith("x-") else _response(response, produces)
        for code, response in (operation.get("responses") or {}).items()
        if code == "default" or code.isdecimal() or code.startswith("x-")
    }
    return converted


def _content(schema: Object, media_types: Sequence[str]) -> Object:
    return {media_type: {"schema": schema_of_v2(schema)} for media_type in media_types}


def _response(response: Object, produces: Sequence[str]) -> Object:
    converted = {key: response[key] for key in ("description",) if response.get(key)} | _extensions(response)
    if reference := response.get("$ref"):
        converted["$ref"] = reference.replace(_RESPONSES, "#/components/responses/", 1)
    if "schema" in response and produces:
        converted["content"] = _content(response["schema"], produces)
    return converted


def _resolved(parameter: Object, shared: Mapping[str, Object]) -> Object:
    reference = parameter.get("$ref", "")
    return shared[reference.removeprefix(_SHARED_PARAMETERS)] if reference else parameter


def _parameter(parameter: Object, shared: Mapping[str, Object]) -> Object:
    parameter = _resolved(parameter, shared)
    converted = {key: parameter[key] for key in _PARAMETER if parameter.get(key)} | _extensions(parameter)
    if "schema" in parameter:
        converted["schema"] = schema_of_v2(parameter["schema"])
    else:
        simple: dict[str, Any] = {"type": parameter.get("type", "")}
        converted["schema"] = simple | {key: parameter[key] for key in ("format", "uniqueItems") if parameter.get(key)}
    return converted


def _security_scheme(scheme: Object) -> Object:
    converted = {key: scheme[key] for key in ("type", "description", "name", "in") if scheme.get(key)}
    converted |= _extensions(scheme)
    if flow := scheme.get("flow"):
        urls = {"authorizationUrl": scheme.get("authorizationUrl"), "tokenUrl": scheme.get("tokenUrl")}
        urls["scopes"] = scheme.get("scopes")
        converted["flows"] = {flow: {key: value for key, value in urls.items() if value}}
    return converted
