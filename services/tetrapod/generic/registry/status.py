"""`StatusStrategy`: the `/status` subresource of a kind: only status (and metadata, as upstream) may change through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.strategy import Strategy
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import Object

_NOT_KEPT: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
ValidateStatus = Callable[[Object, Object], list[FieldError]]


class StatusStrategy(Strategy):
    """`keep_metadata` names what of metadata stays as it is ("labels" for Deployment); `validate` looks at (new, old)."""

    def __init__(self, main: Strategy, *, keep_metadata: tuple[str, ...] = (), validate: ValidateStatus | None = None) -> None:
        self.main = main
        self.namespaced = main.namespaced
        self.allow_unconditional_update = main.allow_unconditional_update
        self._keep_metadata = keep_metadata
        self._validate = validate

    def default(self, obj: Object, version: str) -> None:
        self.main.default(obj, version)

    def prepare_for_update(self, ctx: Context, new: Object, old: Object) -> None:
        for key in [k for k in new if k not in _NOT_KEPT and k not in old]:
            del new[key]
        for key, value in old.items():
            if key not in _NOT_KEPT:
                new[key] = value
        for key in self._keep_metadata:
            new["metadata"].pop(key, None)
            if key in old["metadata"]:
                new["metadata"][key] = old["metadata"][key]

    def validate_update(self, ctx: Context, new: Object, old: Object) -> list[FieldError]:
        return self._validate(new, old) if self._validate else []

    def canonicalize(self, obj: Object) -> None:
        self.main.canonicalize(obj)

    def reset_fields(self, version: str) -> list[tuple[str, ...]]:
        return [("spec",), *(("metadata", key) for key in self._keep_metadata)]
