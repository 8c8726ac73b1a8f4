"""Impersonation: acts as the user of the Impersonate-* headers, if the authorizer allows it.

It implements constrained impersonation (KEP-5284) with the legacy mode as the last one. The modes are in
`impersonation_modes.py`; the mode that last worked for a requestor is tried first. Without the feature gate
ConstrainedImpersonation there is only the legacy mode.
Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation
"""

from __future__ import annotations

import time
from collections.abc import Coroutine
from typing import Any, Final

from tetrapod.generic.authentication.bearer import utf8
from tetrapod.generic.authentication.requestheader import extra_key
from tetrapod.generic.authorization.interface import Attributes, Authorizer
from tetrapod.generic.configuration import feature_gates
from tetrapod.generic.filters.authorization import attributes_of
from tetrapod.generic.filters.filter_metrics import (
    CountedAuthorizer,
    FilterLatency,
    count_impersonation,
    count_rejected_impersonation,
)
from tetrapod.generic.filters.impersonation_modes import Impersonated, Mode, all_modes
from tetrapod.generic.http.headers import NOSNIFF
from tetrapod.generic.http.known_heads import of_headers
from tetrapod.generic.http.request import Handler, HeaderList, Request, Response
from tetrapod.machinery.boundedcache import BoundedCache
from tetrapod.machinery.failure import Failure
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.status import StatusError, bad_request
from tetrapod.machinery.user import UserInfo

USER: Final = b"impersonate-user"
UID: Final = b"impersonate-uid"
GROUP: Final = b"impersonate-group"
EXTRA_PREFIX: Final = b"impersonate-extra-"
_PREFIX: Final = b"impersonate-"


def with_impersonation(handler: Handler, authorizer: Authorizer) -> Handler:
    """Return a handler that replaces `request.user` by the user of the Impersonate-* headers, if that is authorized.

    The headers are removed. The original user is stored in `request.state["impersonator"]`, and the authorized verb in
    `request.state["impersonation_constraint"]`. The handler raises StatusError 403 for a rejection, and 400 for headers
    that name no user.
    """
    constrained = feature_gates.enabled("ConstrainedImpersonation")
    modes = all_modes(CountedAuthorizer(authorizer))
    tracker = ModeTracker(modes if constrained else modes[-1:])
    latency = FilterLatency("constrainedimpersonation" if constrained else "impersonation")

    # Not a coroutine: nearly all requests would resume it in vain whenever they have waited for something.
    def impersonation(request: Request) -> Coroutine[Any, Any, Response]:
        target = requested_user(request)
        if target is None:
            latency.passed()
            return handler(request)
        return impersonated(request, target)

    async def impersonated(request: Request, target: UserInfo) -> Response:
        started = time.monotonic()
        try:
            acting = await tracker.impersonate(target, attributes_of(request))
        except StatusError:
            count_rejected_impersonation(time.monotonic() - started)
            raise
        seconds = time.monotonic() - started
        count_impersonation(acting.constraint, seconds)
        latency.observe(seconds)
        if request.audit is not None:
            request.audit.add_latency("impersonation", started)
        request.headers = [
            h for h in request.headers if h[0] not in (USER, UID, GROUP) and not h[0].startswith(EXTRA_PREFIX)
        ]
        request.state["impersonator"] = request.user
        request.state["impersonation_constraint"] = acting.constraint
        request.user = acting.user
        return await handler(request)

    return impersonation


def requested_user(request: Request) -> UserInfo | None:
    """Return the user that the Impersonate-* headers name, or None if they name nothing.

    Raises:
        StatusError: 400, the headers contain a uid, groups or extra values but no name.
    """
    return _named_user(request) if of_headers(request, _impersonate) else None


def _impersonate(headers: HeaderList) -> bool:
    for name, _ in headers:  # noqa: SIM110 - `any` takes twice the time
        if name.startswith(_PREFIX):
            return True
    return False


def _named_user(request: Request) -> UserInfo | None:
    name = utf8(request.header(USER))
    uid = utf8(request.header(UID))
    groups = tuple(utf8(value) for value in request.header_values(GROUP))
    listed: dict[str, list[str]] = {}
    for key, value in request.headers:
        if key.startswith(EXTRA_PREFIX):
            listed.setdefault(extra_key(key[len(EXTRA_PREFIX) :].decode("latin-1")), []).append(
                utf8(value.decode("latin-1"))
            )
    extra = {key: tuple(texts) for key, texts in listed.items()}
    if name:
        return UserInfo(name, uid, groups, extra)
    if uid or groups or extra:
        raise _without_name(uid, groups, extra)
    return None


def _without_name(uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> StatusError:
    error = bad_request(f"requested {_go_syntax(uid, groups, extra)} without impersonating a user name")
    error.headers.append(NOSNIFF)
    return error


def _go_syntax(uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> str:
    """Return a user without a name as Go's %#v prints a user.DefaultInfo; upstream's error message contains this text.

    `extra` maps the extra keys of the user to their values.
    """
    listed = "[]string{" + ", ".join(map(go_quote, groups)) + "}" if groups else "[]string(nil)"
    pairs = (f"{go_quote(k)}:[]string{{{', '.join(map(go_quote, v))}}}" for k, v in sorted(extra.items()))
    mapped = "map[string][]string{" + ", ".join(pairs) + "}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{go_quote(uid)}, Groups:{listed}, Extra:{mapped}}}'


class ModeTracker:
    """The modes of impersonation, and which of them last allowed an impersonation for each user who impersonates."""

    def __init__(self, modes: list[Mode]) -> None:
        self._modes = modes
        self._last: BoundedCache[str, int] = BoundedCache(count=10_000, size=2 << 20)

    async def impersonate(self, target: UserInfo, attributes: Attributes) -> Impersonated:
        """Return the result of the first mode that allows the impersonation.

        The mode that last worked for the requestor is tried first, then the others in order.

        Args:
            target: the user that the headers name.
            attributes: the request, with the requestor as its user.

        Raises:
            StatusError: 403, no mode allows it. This is the rejection of the first mode that was tried and applies.
        """
        requestor = attributes.user.name
        last = self._last.recall(requestor)
        order = range(len(self._modes)) if last is None else [last, *(i for i in range(len(self._modes)) if i != last)]
        failure: Failure[StatusError] | None = None
        for index in order:
            try:
                impersonated = await self._modes[index].check(target, attributes)
            except StatusError as error:
                failure = failure or Failure(error)
                continue
            if impersonated is not None:
                self._remember(requestor, index)
                return impersonated
        assert failure is not None  # the legacy mode always decides
        raise failure.error()

    def _remember(self, requestor: str, index: int) -> None:
        if self._last.get(requestor) != index:
            self._last.keep(requestor, index)
