"""The parameters of lists and watches, and a page of a list.

Upstream: staging/src/k8s.io/apiserver/pkg/storage/interfaces.go, ListOptions
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tetrapod.generic.storage.entry import EVERYTHING, Entry, Predicate

View: TypeAlias = Callable[[Sequence[Entry]], Awaitable[Sequence[Entry | None]]]
"""A function that returns entries in the form the request sees (another version), with None in place of each entry
that the predicate does not match in that form.
"""


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The parameters of a list.

    - `prefix` is relative to the resource's prefix: "" (all objects), "ns/" (those of a namespace), or, if `single` is
      set, the whole key of one object (for metadata.name selectors).
    - `limit` 0 means no limit.
    - `resource_version` "" means most recent (consistent), "0" means any; `match` is resourceVersionMatch ("" if
      unset).
    - `continue_token` is the client's `continue` parameter; "" on the first page.
    - `view` converts entries to another version and then applies the selectors; None uses `predicate`. It is called
      with some of the entries and returns, for each, the converted entry, or None if it does not match.
    """

    prefix: str = ""
    predicate: Predicate = EVERYTHING
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    match: str = ""
    single: bool = False
    view: View | None = None


class ListPage(NamedTuple):
    """One page of a list, in key order.

    Attributes:
        entries: the objects of the page.
        resource_version: the resourceVersion of the list.
        continue_token: the token for the next page; "" on the last page.
        remaining: the number of objects after this page; None on the last page, or if a selector makes it unknown.
    """

    entries: list[Entry]
    resource_version: str
    continue_token: str
    remaining: int | None


@dataclass(frozen=True, slots=True)
class WatchQuery:
    """The parameters of a watch.

    - `prefix` is relative to the resource's prefix: "" (all objects), "ns/" (those of a namespace), or, if `single` is
      set, the whole key of one object.
    - `predicate` has the selectors.
    - `resource_version` and `match` (resourceVersionMatch) are the client's values, unparsed.
    - `bookmarks` is allowWatchBookmarks.
    - `initial_events` is sendInitialEvents; None if the client did not set it.
    """

    prefix: str = ""
    predicate: Predicate = EVERYTHING
    resource_version: str = ""
    match: str = ""
    bookmarks: bool = False
    initial_events: bool | None = None
    single: bool = False
