"""`Presence` lists exactly the resources of a group that have objects, however they were created."""

from __future__ import annotations

import asyncio

from tetrapod.generic.storage.backend import Backend
from tetrapod.generic.storage.presence import Presence


async def until(presence: Presence, *resources: tuple[str, str]) -> None:
    async with asyncio.timeout(10):
        while not all(resource in presence for resource in resources):
            presence.changed.clear()
            await presence.changed.wait()


async def test_resources_that_were_stored_before_the_start_are_found(backend: Backend, root: str) -> None:
    for key in ("g.example/apples/ns/a", "g.example/apples/ns/b", "g.example/pears/x", "h.example/plums/x"):
        assert (await backend.put_if(f"{root}/{key}", b"{}", 0)).succeeded
    presence = Presence(backend, root)
    presence.follow({"g.example"})
    await until(presence, ("g.example", "apples"), ("g.example", "pears"))
    assert ("h.example", "plums") not in presence
    await presence.close()


async def test_the_first_object_of_a_resource_is_noticed(backend: Backend, root: str) -> None:
    presence = Presence(backend, root)
    presence.follow({"g.example"})
    assert (await backend.put_if(f"{root}/g.example/apples/ns/a", b"{}", 0)).succeeded
    await until(presence, ("g.example", "apples"))
    assert (await backend.put_if(f"{root}/g.example/pears/ns/a", b"{}", 0)).succeeded
    await until(presence, ("g.example", "pears"))
    await presence.close()


async def test_a_group_that_is_not_followed_any_more_has_no_resources(backend: Backend, root: str) -> None:
    presence = Presence(backend, root)
    assert (await backend.put_if(f"{root}/g.example/apples/ns/a", b"{}", 0)).succeeded
    presence.follow({"g.example"})
    await until(presence, ("g.example", "apples"))
    presence.follow(set())
    assert ("g.example", "apples") not in presence
    await presence.close()
