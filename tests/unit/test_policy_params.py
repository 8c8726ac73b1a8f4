"""The parameters of admission policies while the API cannot be reached: the failurePolicy decides, not a panic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from tetrapod.generic.admission.policy.params import ConfigurationError, Params
from tetrapod.generic.lifecycle import Unavailable
from tetrapod.machinery.gvk import GroupVersionKind

KIND = GroupVersionKind("", "v1", "ConfigMap")


class Leaving:
    """A client of an API that has been listed, and then cannot be reached."""

    async def raw(self, *_: Any) -> tuple[int, bytes]:
        return 200, orjson.dumps({"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]})

    async def list(self, *_: Any, **__: Any) -> Any:
        return {"metadata": {"resourceVersion": "5"}, "items": []}

    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield

    async def get(self, *_: Any, **__: Any) -> Any:
        raise Unavailable("connection refused")


async def test_a_parameter_that_cannot_be_read_is_an_error_of_the_binding() -> None:
    tasks: list[asyncio.Task[None]] = []

    def background(_: str, work: Any) -> None:
        tasks.append(asyncio.create_task(work))

    params = Params(Leaving(), background)  # type: ignore[arg-type]
    await params.add_kind(KIND)
    try:
        with pytest.raises(ConfigurationError, match="connection refused"):
            await params.collect(KIND, {"name": "limits"}, "default")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
