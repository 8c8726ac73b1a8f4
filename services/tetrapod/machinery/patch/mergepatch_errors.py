"""Errors of strategic merge patch, with upstream's texts.

Upstream responds with a 500 to errors that interpretStrategicMergePatchError does not handle. The client causes them,
so this package responds with a 400 and the same text.

Upstream: k8s.io/apimachinery/pkg/util/mergepatch/errors.go; k8s.io/apiserver/pkg/endpoints/handlers/patch.go,
interpretStrategicMergePatchError.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tetrapod.machinery.golang.formatting import as_text, plain
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.status import StatusError, bad_request

bad_patch: Final = bad_request
"""Returns the 400 for an error that upstream's interpretStrategicMergePatchError does not handle."""

BAD_PRIMITIVE_LIST: Final[Callable[[], StatusError]] = partial(bad_request, "invalid patch format of primitive list")
BAD_RETAIN_KEYS: Final[Callable[[], StatusError]] = partial(bad_request, "invalid patch format of retainKeys")
BAD_SET_ELEMENT_ORDER: Final[Callable[[], StatusError]] = partial(
    bad_request, "invalid patch format of setElementOrder list"
)


def no_lists_of_lists() -> StatusError:
    """Return the 422 for a list whose elements are lists."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def no_merge_key(element: Object, merge_key: str) -> StatusError:
    """Return the 400 for a list element without the merge key.

    Args:
        element: the element, which the message shows.
        merge_key: the name of the field that the element lacks.
    """
    return bad_patch(f"map: {plain(element)} does not contain declared merge key: {merge_key}")


def bad_patch_type(directive: Any, element: Object) -> StatusError:
    """Return the 400 for an unknown value of the `$patch` directive.

    Args:
        directive: the value of `$patch`.
        element: the object that has the directive, which the message shows.
    """
    return bad_patch(f"unknown patch type: {as_text(directive)} in map: {plain(element)}")


def bad_argument_type(expected: str, actual: str) -> StatusError:
    """Return the 400 for a value of the wrong type. Both types are named as in Go.

    Args:
        expected: the expected Go type.
        actual: the Go type of the value; "<nil>" for null.
    """
    return bad_patch(f"expected a {expected}, but received a {'%!s(<nil>)' if actual == '<nil>' else actual}")
