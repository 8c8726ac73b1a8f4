"""The deletion of system priority classes."""

from __future__ import annotations

import orjson

from integration.core.conftest import Core

PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"
SYSTEM = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "system-node-critical"},
    "value": 2_000_001_000,
}


async def _call(core: Core, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
    status, answer = await core.client.raw(method, path, b"" if body is None else orjson.dumps(body))
    return status, orjson.loads(answer)


async def test_a_system_class_is_deleted_only_with_a_collection(core: Core) -> None:
    assert (await _call(core, "POST", PATH, SYSTEM))[0] == 201
    status, answer = await _call(core, "DELETE", f"{PATH}/system-node-critical")
    text = "this is a system priority class and cannot be deleted"
    message = f'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: {text}'
    assert (status, answer["message"]) == (403, message)
    assert (await _call(core, "DELETE", PATH))[0] == 200
    assert (await _call(core, "GET", f"{PATH}/system-node-critical"))[0] == 404
