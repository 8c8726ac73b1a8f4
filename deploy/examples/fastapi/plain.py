"""An aggregated API server in plain FastAPI, without Tetrapod's library: todo.example.com/v1, kept in memory.

It serves discovery, OpenAPI, and get, list, create, delete and watch of `todos`, also as Tables. RBAC of the cluster
decides by SubjectAccessReviews. uvicorn must require a client certificate of the front proxy's CA (README.md), because
the identity headers are trusted here.
"""

import asyncio
import json
import os
import ssl
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field, ValidationError

GROUP, VERSION = "todo.example.com", "v1"
API_VERSION, ROOT = f"{GROUP}/{VERSION}", f"/apis/{GROUP}/{VERSION}"
VERBS = ["create", "delete", "get", "list", "watch"]


class Spec(BaseModel):
    """The desired state of the object."""

    task: str = Field(min_length=1, description="What is to be done.")
    done: bool = False


class Todo(BaseModel):
    """A thing to do."""

    apiVersion: str = API_VERSION  # noqa: N815  # the name in the Kubernetes API
    kind: str = "Todo"
    metadata: dict[str, Any]
    spec: Spec


class Store:
    """The objects by namespace and name, and all events since the start. The resource version counts the events."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.changed = asyncio.Condition()

    @property
    def version(self) -> str:
        return str(len(self.events) + 1)

    async def record(self, type_: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Append an event with the object at the next resource version, wake the watches, and return the object."""
        async with self.changed:
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(len(self.events) + 2)}}
            self.events.append({"type": type_, "object": obj})
            self.changed.notify_all()
        return obj

    async def watch(self, since: int, namespace: str, seconds: float) -> AsyncIterator[dict[str, Any]]:
        """Yield the events after a resource version as they happen, and end after some seconds."""
        deadline = asyncio.get_running_loop().time() + seconds
        position = since - 1
        while True:
            while position < len(self.events):
                event = self.events[position]
                position += 1
                if namespace in ("", event["object"]["metadata"]["namespace"]):
                    yield event
            remaining = deadline - asyncio.get_running_loop().time()
            if remaining <= 0:
                return
            try:
                async with asyncio.timeout(remaining), self.changed:
                    while position >= len(self.events):
                        await self.changed.wait()
            except TimeoutError:
                return


app = FastAPI(openapi_url=None)
store = Store()


class StatusError(HTTPException):
    """An error, which is answered with a Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(code, message)
        self.reason = reason


@app.exception_handler(StatusError)
async def status(_: Request, error: StatusError) -> JSONResponse:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": error.status_code}
    return JSONResponse({**body, "reason": error.reason, "message": error.detail}, error.status_code)


def not_found(name: str) -> StatusError:
    return StatusError(404, "NotFound", f'todos.{GROUP} "{name}" not found')


_kubernetes: httpx.AsyncClient | None = None


def kubernetes() -> httpx.AsyncClient:
    """Return a client of the Kubernetes API, with the credentials of the environment."""
    global _kubernetes
    if _kubernetes is None:
        context = ssl.create_default_context(cafile=os.environ["KUBERNETES_CA"])
        headers = {"Authorization": f"Bearer {os.environ['KUBERNETES_TOKEN']}"}
        _kubernetes = httpx.AsyncClient(base_url=os.environ["KUBERNETES_URL"], verify=context, headers=headers)
    return _kubernetes


async def authorize(request: Request, namespace: str = "", name: str = "") -> None:
    """Ask the cluster whether the user of the identity headers may send this request; raise a 403 if not."""
    verb = {"POST": "create", "DELETE": "delete"}.get(request.method, "get" if name else "list")
    if verb == "list" and request.query_params.get("watch") in ("1", "true"):
        verb = "watch"
    user = request.headers.get("x-remote-user", "")
    attributes = {"group": GROUP, "version": VERSION, "resource": "todos", "verb": verb, "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "groups": request.headers.getlist("x-remote-group"),
            "resourceAttributes": {**attributes, "name": name},
        },
    }
    answer = await kubernetes().post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review)
    if not answer.is_success or not answer.json()["status"].get("allowed"):
        raise StatusError(403, "Forbidden", f'todos.{GROUP} is forbidden: User "{user}" cannot {verb} resource "todos"')


@app.get("/readyz")
@app.get("/livez")
async def health() -> str:
    return "ok"


# --- discovery and OpenAPI

DISCOVERED = {"groupVersion": API_VERSION, "version": VERSION}
API_GROUP = {"name": GROUP, "versions": [DISCOVERED], "preferredVersion": DISCOVERED}


@app.get("/apis")
async def groups() -> dict[str, Any]:
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [API_GROUP]}


@app.get(f"/apis/{GROUP}")
async def group() -> dict[str, Any]:
    return {"kind": "APIGroup", "apiVersion": "v1", **API_GROUP}


@app.get(ROOT)
async def resources() -> dict[str, Any]:
    todos = {"name": "todos", "singularName": "todo", "namespaced": True, "kind": "Todo", "verbs": VERBS}
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION, "resources": [todos]}


@app.get("/openapi/v3")
async def openapi_index() -> dict[str, Any]:
    return {"paths": {ROOT[1:]: {"serverRelativeURL": f"/openapi/v3{ROOT}?hash={VERSION}"}}}


@app.get(f"/openapi/v3{ROOT}")
async def openapi() -> dict[str, Any]:
    name = "com.example.todo.v1.Todo"
    schema = Todo.model_json_schema(ref_template="#/components/schemas/com.example.todo.v1.{model}")
    schemas = {f"com.example.todo.v1.{key}": value for key, value in schema.pop("$defs").items()}
    gvk = {"group": GROUP, "version": VERSION, "kind": "Todo"}
    schema["x-kubernetes-group-version-kind"] = [gvk]
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    operation = {"x-kubernetes-action": "get", "x-kubernetes-group-version-kind": gvk}
    read = {**operation, "responses": {"200": {"description": "OK", "content": content}}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "todo", "version": VERSION},
        "paths": {ROOT + "/namespaces/{namespace}/todos/{name}": {"get": read}},  # kubectl explain looks for the kind
        "components": {"schemas": {**schemas, name: schema}},
    }


# --- objects


def as_table(request: Request) -> bool:
    return "as=Table" in request.headers.get("accept", "")


def table(objects: list[dict[str, Any]], version: str) -> dict[str, Any]:
    columns = [("Name", "string", "name"), ("Task", "string", ""), ("Done", "boolean", ""), ("Created", "date", "")]
    definitions = [{"name": n, "type": t, "format": f, "description": n, "priority": 0} for n, t, f in columns]
    rows = [
        {
            "cells": [o["metadata"]["name"], o["spec"]["task"], o["spec"]["done"], o["metadata"]["creationTimestamp"]],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]},
        }
        for o in objects
    ]
    kind = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": version}}
    return {**kind, "columnDefinitions": definitions, "rows": rows}


@app.get(ROOT + "/todos", dependencies=[Depends(authorize)], response_model=None)
@app.get(ROOT + "/namespaces/{namespace}/todos", dependencies=[Depends(authorize)], response_model=None)
async def list_or_watch(request: Request, namespace: str = "") -> dict[str, Any] | StreamingResponse:
    found = [obj for (ns, _), obj in sorted(store.objects.items()) if namespace in ("", ns)]
    selector = request.query_params.get("fieldSelector", "")
    if selector.startswith("metadata.name="):
        found = [obj for obj in found if obj["metadata"]["name"] == selector.removeprefix("metadata.name=")]
    if request.query_params.get("watch") in ("1", "true"):
        since = int(request.query_params.get("resourceVersion") or store.version)
        seconds = float(request.query_params.get("timeoutSeconds") or 1800)
        return StreamingResponse(events(request, since, namespace, seconds), media_type="application/json")
    if as_table(request):
        return table(found, store.version)
    metadata = {"resourceVersion": store.version}
    return {"kind": "TodoList", "apiVersion": API_VERSION, "metadata": metadata, "items": found}


async def events(request: Request, since: int, namespace: str, seconds: float) -> AsyncIterator[str]:
    """Yield one line of JSON for each event. Objects are Tables with one row if the client asks for Tables."""
    async for event in store.watch(since, namespace, seconds):
        obj = event["object"]
        shown = table([obj], obj["metadata"]["resourceVersion"]) if as_table(request) else obj
        yield json.dumps({"type": event["type"], "object": shown}) + "\n"


@app.get(ROOT + "/namespaces/{namespace}/todos/{name}", dependencies=[Depends(authorize)])
async def get(request: Request, namespace: str, name: str) -> dict[str, Any]:
    if (namespace, name) not in store.objects:
        raise not_found(name)
    obj = store.objects[namespace, name]
    return table([obj], obj["metadata"]["resourceVersion"]) if as_table(request) else obj


@app.post(ROOT + "/namespaces/{namespace}/todos", dependencies=[Depends(authorize)], status_code=201)
async def create(request: Request, namespace: str) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise StatusError(415, "UnsupportedMediaType", "the body must be application/json")
    try:
        todo = Todo.model_validate_json(await request.body())
    except ValidationError as error:
        malformed = any(each["type"] == "json_invalid" for each in error.errors())
        raise StatusError(400 if malformed else 422, "BadRequest" if malformed else "Invalid", str(error)) from None
    name = todo.metadata.get("name", "")
    if (namespace, name) in store.objects:
        raise StatusError(409, "AlreadyExists", f'todos.{GROUP} "{name}" already exists')
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    todo.metadata |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": now}
    if request.query_params.get("dryRun") == "All":
        return todo.model_dump()
    obj = await store.record("ADDED", todo.model_dump())
    store.objects[namespace, name] = obj
    return obj


@app.delete(ROOT + "/namespaces/{namespace}/todos/{name}", dependencies=[Depends(authorize)])
async def delete(request: Request, namespace: str, name: str) -> dict[str, Any]:
    if (namespace, name) not in store.objects:
        raise not_found(name)
    if request.query_params.get("dryRun") != "All":
        await store.record("DELETED", store.objects.pop((namespace, name)))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
