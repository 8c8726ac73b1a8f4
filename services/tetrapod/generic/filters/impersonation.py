"""Acts as another user where Impersonate-* headers ask for it and the authorizer lets the requestor do so.

Follows k8s.io/apiserver/pkg/endpoints/filters/impersonation (constrained impersonation, KEP-5284, with the classic mode as
the last one). The modes are in `impersonation_modes.py`; the one that last worked for a user is tried first.
"""

from __future__ import annotations

import time
from typing import Final

from tetrapod.generic.authentication.bearer import utf8
from tetrapod.generic.authentication.requestheader import extra_key
from tetrapod.generic.authorization.interface import Attributes, Authorizer
from tetrapod.generic.filters.authorization import attributes_of
from tetrapod.generic.filters.filter_metrics import CountedAuthorizer, FilterLatency, impersonated, impersonation_refused
from tetrapod.generic.filters.impersonation_modes import Impersonated, Mode, all_modes
from tetrapod.generic.request import Handler, Request, Response
from tetrapod.generic.user import UserInfo
from tetrapod.machinery.field import go_quote
from tetrapod.machinery.status import StatusError, bad_request

USER: Final = b"impersonate-user"
UID: Final = b"impersonate-uid"
GROUP: Final = b"impersonate-group"
EXTRA_PREFIX: Final = b"impersonate-extra-"
_PREFIX: Final = b"impersonate-"
_REMEMBERED_USERS: Final = 10_000


def with_impersonation(handler: Handler, authorizer: Authorizer) -> Handler:
    """Leaves who really asked in `request.state["impersonator"]`, and by what verb in `request.state["impersonation_constraint"]`."""
    tracker = ModeTracker(all_modes(CountedAuthorizer(authorizer)))
    latency = FilterLatency("constrainedimpersonation")

    async def impersonation(request: Request) -> Response:
        wanted = wanted_user(request)
        if wanted is None:
            latency.passed()
            return await handler(request)
        began = time.monotonic()
        try:
            acting = await tracker.impersonate(wanted, attributes_of(request))
        except StatusError:
            impersonation_refused(time.monotonic() - began)
            raise
        seconds = time.monotonic() - began
        impersonated(acting.constraint, seconds)
        latency.took(seconds)
        if request.audit is not None:
            request.audit.took("impersonation", began)
        request.headers = [h for h in request.headers if h[0] not in (USER, UID, GROUP) and not h[0].startswith(EXTRA_PREFIX)]
        request.state["impersonator"] = request.user
        request.state["impersonation_constraint"] = acting.constraint
        request.user = acting.user
        return await handler(request)

    return impersonation


def wanted_user(request: Request) -> UserInfo | None:
    """The user that the headers name, as sent; None where they name none."""
    for key, _ in request.headers:
        if key.startswith(_PREFIX):
            return _named_user(request)
    return None


def _named_user(request: Request) -> UserInfo | None:
    name = utf8(request.header(USER))
    uid = utf8(request.header(UID))
    groups = tuple(utf8(value) for value in request.header_values(GROUP))
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in request.headers:
        if key.startswith(EXTRA_PREFIX):
            name_of_extra = extra_key(key[len(EXTRA_PREFIX) :].decode("latin-1"))
            extra[name_of_extra] = (*extra.get(name_of_extra, ()), utf8(value.decode("latin-1")))
    if name:
        return UserInfo(name, uid, groups, extra)
    if uid or groups or extra:
        refusal = bad_request(f"requested {_go_syntax(uid, groups, extra)} without impersonating a user name")
        refusal.headers.append((b"x-content-type-options", b"nosniff"))
        raise refusal
    return None


def _go_syntax(uid: str, groups: tuple[str, ...], extra: dict[str, tuple[str, ...]]) -> str:
    """A user.DefaultInfo as Go's %#v prints it: upstream's message holds one."""
    listed = "[]string{" + ", ".join(map(go_quote, groups)) + "}" if groups else "[]string(nil)"
    pairs = (f"{go_quote(k)}:[]string{{{', '.join(map(go_quote, v))}}}" for k, v in sorted(extra.items()))
    mapped = "map[string][]string{" + ", ".join(pairs) + "}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{go_quote(uid)}, Groups:{listed}, Extra:{mapped}}}'


class ModeTracker:
    """Tries the modes in order, beginning with the one that last worked for the requestor."""

    def __init__(self, modes: list[Mode]) -> None:
        self._modes = modes
        self._last: dict[str, int] = {}

    async def impersonate(self, wanted: UserInfo, attributes: Attributes) -> Impersonated:
        """Raises the first refusal (StatusError) where no mode allows it."""
        requestor = attributes.user.name
        last = self._last.get(requestor)
        order = range(len(self._modes)) if last is None else [last, *(i for i in range(len(self._modes)) if i != last)]
        refusal: StatusError | None = None
        for index in order:
            try:
                impersonated = await self._modes[index].check(wanted, attributes)
            except StatusError as error:
                refusal = refusal or error
                continue
            if impersonated is not None:
                self._remember(requestor, index)
                return impersonated
        assert refusal is not None  # the classic mode always has an opinion
        raise refusal

    def _remember(self, requestor: str, index: int) -> None:
        if self._last.get(requestor) == index:
            return
        if len(self._last) >= _REMEMBERED_USERS:
            del self._last[next(iter(self._last))]
        self._last[requestor] = index
