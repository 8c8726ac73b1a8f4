"""The text of 403 responses: `User "x" cannot get resource "pods" in API group "" in the namespace "y"`.

The authorization and impersonation filters raise `forbidden_error`. Endpoints that call the authorizer themselves
(create by update) raise `forbidden_status`, because upstream sends those without the nosniff header.
Upstream: k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go.
"""

from __future__ import annotations

from tetrapod.generic.authorization.interface import Attributes
from tetrapod.generic.http.headers import NOSNIFF
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import GroupResource
from tetrapod.machinery.status import StatusError, forbidden


def forbidden_message(attributes: Attributes) -> str:
    """Return the text `User "x" cannot …`, without the authorizer's reason. `<`, `>` and `&` are not escaped."""
    user = go_quote(attributes.user.name)
    if not attributes.resource_request:
        return f"User {user} cannot {attributes.verb} path {go_quote(attributes.path)}"
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    where = f"in the namespace {go_quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return (
        f"User {user} cannot {attributes.verb} resource {go_quote(resource)} "
        f"in API group {go_quote(attributes.group)} {where}"
    )


def forbidden_status(attributes: Attributes, reason: str = "") -> StatusError:
    """Return a StatusError 403 with the text `User "x" cannot …: REASON`; without the colon if `reason` is empty.

    `<`, `>` and `&` in the text before the reason are escaped as in HTML.
    """
    text = _escape_html(forbidden_message(attributes))
    if reason:
        text = f"{text}: {reason}"
    return forbidden(GroupResource(attributes.group, attributes.resource), attributes.name, text)


def forbidden_error(attributes: Attributes, reason: str = "") -> StatusError:
    """Return a StatusError 403 with the text `User "x" cannot …: REASON`, for rejections by a filter.

    It is the result of `forbidden_status` with the header `X-Content-Type-Options: nosniff`, which upstream's
    authorization filter sends.
    """
    error = forbidden_status(attributes, reason)
    error.headers.append(NOSNIFF)
    return error


def _escape_html(text: str) -> str:
    """Escape `<`, `>` and `&`, because the text contains a path that another user may have chosen."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
