"""The refusals of strategic merge patch, with upstream's texts.

Follows k8s.io/apimachinery/pkg/util/mergepatch/errors.go and interpretStrategicMergePatchError of
k8s.io/apiserver/pkg/endpoints/handlers/patch.go. Upstream answers those it does not interpret as code 500; they are the
client's mistakes, so we answer 400 with the same text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tetrapod.machinery.gvk import Object
from tetrapod.machinery.patch.goformat import as_text, plain
from tetrapod.machinery.status import StatusError, bad_request

refusal: Final = bad_request
"""A misuse that upstream does not interpret."""

BAD_PRIMITIVE_LIST: Final[Callable[[], StatusError]] = partial(bad_request, "invalid patch format of primitive list")
BAD_RETAIN_KEYS: Final[Callable[[], StatusError]] = partial(bad_request, "invalid patch format of retainKeys")
BAD_SET_ELEMENT_ORDER: Final[Callable[[], StatusError]] = partial(bad_request, "invalid patch format of setElementOrder list")
UNSUPPORTED: Final[Callable[[], StatusError]] = partial(bad_request, "strategic merge patch format is not supported")


def NO_LISTS_OF_LISTS() -> StatusError:  # noqa: N802  (reads as its siblings)
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def no_merge_key(element: Object, merge_key: str) -> StatusError:
    return refusal(f"map: {plain(element)} does not contain declared merge key: {merge_key}")


def bad_patch_type(directive: Any, element: Object) -> StatusError:
    return refusal(f"unknown patch type: {as_text(directive)} in map: {plain(element)}")


def bad_argument_type(expected: str, actual: str) -> StatusError:
    return refusal(f"expected a {expected}, but received a {'%!s(<nil>)' if actual == '<nil>' else actual}")
