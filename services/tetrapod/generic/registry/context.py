"""The request context that the registry, strategies and admission use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ParamSpec

from tetrapod.generic.observability.tracing.spans import traced
from tetrapod.generic.scheduling.offload import copy_of, in_thread
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.gvk import GroupKind, Object
from tetrapod.machinery.long_work import TakesTooLong, on_event_loop
from tetrapod.machinery.user import LOOPBACK, UserInfo


@dataclass(frozen=True, slots=True)
class KindMismatch:
    """The kind in the body of a request for a custom object of another kind, with the errors about it.

    The errors replace those of the strategy when the object is validated.
    """

    kind: GroupKind
    errors: list[FieldError]


@dataclass(slots=True)
class Context:
    """The context of one request, or, with the defaults, of the server's own work.

    Attributes:
        user: the user who makes the request.
        namespace: the namespace of the path; "" for none.
        version: the version of the request, such as "v1".
        subresource: the subresource; "" for the resource itself.
        dry_run: whether nothing is to be stored.
        warnings: the texts of Warning headers, to which handlers append.
        annotations: the annotations of the audit event, to which handlers add.
        large: whether the new or the stored object has many bytes or members (`is_large`). Work on it is then done in a
            thread, so that it does not block the event loop.
        discarded: the objects that `discard` has collected; None for requests that write no object, and for the
            server's own work.
        verb: the verb that was authorized, such as "patch" for a patch that creates an object.
        unchanged: whether the request leaves the stored object as it is, except for its metadata: an apply that changes
            nothing.
        mismatch: set if the body has a custom object of another kind.
    """

    user: UserInfo = LOOPBACK
    namespace: str = ""
    version: str = ""
    subresource: str = ""
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)
    large: bool = False
    discarded: list[Any] | None = None
    verb: str = ""
    unchanged: bool = False
    mismatch: KindMismatch | None = None

    def kind_in_errors(self, kind: GroupKind) -> GroupKind:
        """Return the kind that the errors of validation name: that of the body if it differs from `kind`."""
        return kind if self.mismatch is None else self.mismatch.kind

    def discard(self, obj: Any) -> None:
        """Keep an object that is not needed any more until the request ends, and then deallocate it in a worker thread.

        Deallocating a large object on the event loop would block other requests. Do nothing unless `large` is True.
        Parts of the object that are still in use elsewhere are left alone.
        """
        if self.large and self.discarded is not None:
            self.discarded.append(obj)

    async def copy(self, obj: Object) -> Object:
        """Return a deep copy of an object. It is made in a thread if `large` is True."""
        return await copy_of(obj, large=self.large)


_P = ParamSpec("_P")


@traced(lambda _, work, *__, **___: work.__name__.replace("_", " "), detailed=True)
async def without_delay(ctx: Context, work: Callable[_P, None], *args: _P.args, **kwargs: _P.kwargs) -> None:
    """Call `work(*args, **kwargs)`, in a thread if `ctx.large` is True.

    Otherwise call it on the event loop. If it then raises `TakesTooLong`, set `ctx.large` to True and call it again in
    a thread.

    Args:
        ctx: the context of the request.
        work: the function, whose other exceptions are passed on.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    if not ctx.large:
        try:
            with on_event_loop():
                work(*args, **kwargs)
            return
        except TakesTooLong:
            ctx.large = True
    await in_thread(work, *args, **kwargs)
