"""The rules by which the responders of an Eviction act one after the other.

The status lists responders twice: `targetResponders` has their priorities and states, which the eviction controller
sets, and `responders` has what each reports of its own progress. Several programs may write the status, so these rules
keep each of them from ending or starting the work of another:

- The responder with the highest priority becomes Active first. The next one follows when it reaches a final state
  (Interrupted, Canceled or Completed), which does not change again.
- Only an Active responder reports. It stays Active until it reports its completion or has not reported for 20 minutes.

Upstream: pkg/apis/lifecycle/validation/validation.go, ValidateAllEvictionStatusResponderFields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from tetrapod.core.podspec import eviction_responders
from tetrapod.core.podspec.eviction_responders import LOWEST_FREE_PRIORITY, RESERVED_PRIORITY
from tetrapod.core.validation.differences import internal, internal_list
from tetrapod.core.validation.names import IMMUTABLE
from tetrapod.machinery import field as fields
from tetrapod.machinery.equality import same
from tetrapod.machinery.field import FieldError
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object
from tetrapod.machinery.timestamps import now, parse

MAX_RESPONDERS: Final = eviction_responders.MAX_RESPONDERS + 1
"""The most responders of an Eviction: those of a pod, and the one that evicts the pod at last."""
_IMPERATIVE: Final = "imperative-eviction.k8s.io/evictor"
_PRIORITIES: Final = {_IMPERATIVE: 100}
"""The priorities of Kubernetes' own responders."""
_ENDED: Final = frozenset({"Interrupted", "Canceled", "Completed"})
_ACTIVE: Final = frozenset({"Active"})
_INACTIVE: Final = frozenset({"Inactive"})
_SILENT_FOR: Final = timedelta(minutes=20)
"""After this time without a report, an Active responder may be ended."""
_SKEW: Final = timedelta(seconds=30)
"""The difference between clocks that is tolerated."""
_LATEST: Final = timedelta(days=3650)
_TARGETS: Final = "status.targetResponders"
_RESPONDERS: Final = "status.responders"
_FINISHED: Final = "the eviction request has finished processing"
_BUSY: Final = (
    f"must stay Active because the responder is in progress and it should report {_RESPONDERS}.heartbeatTime or "
    f"{_RESPONDERS}.completionTime"
)
_NOT_COMPLETED: Final = f"cannot become Completed because the responder didn't report {_RESPONDERS}.completionTime"
_PRESENT: Final = "must be set to the present time"


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of the whole Eviction.

    Attributes:
        evicted: whether the target is evicted.
        failed: whether the Eviction failed.
        moment: the time of the request.
    """

    evicted: bool
    failed: bool
    moment: datetime = field(default_factory=now)

    @property
    def final(self) -> bool:
        """Whether no responder may become Active any more."""
        return self.evicted or self.failed


def responders(status: Object, old_status: Object, progress: Progress) -> list[FieldError]:
    """Return the errors of `targetResponders` and `responders` in a new status, by the rules of this module.

    Args:
        status: the new status.
        old_status: the stored status, or {} without one.
        progress: the state of the Eviction.
    """
    targets, listed = (status.get(name) or [] for name in ("targetResponders", "responders"))
    old_targets, old_listed = (old_status.get(name) or [] for name in ("targetResponders", "responders"))
    return _targets(targets, old_targets, listed, progress) + _reports(listed, old_listed, targets, progress.moment)


def _targets(new: list[Object], old: list[Object], reports: list[Object], progress: Progress) -> list[FieldError]:
    """Return the errors of `targetResponders`. Upstream: ValidateEvictionTargetResponders."""
    names = [target.get("name") or "" for target in new]
    if old and len(new) != len(old):
        shown = internal_list("TargetResponder", new or None)
        return [fields.invalid(_TARGETS, shown, "must preserve the same length and the same keys")]
    if not {target.get("name") or "" for target in old} <= set(names):
        return [fields.invalid(_TARGETS, internal_list("TargetResponder", new or None), "must preserve the same keys")]
    if not new or len(new) > MAX_RESPONDERS or len(set(names)) < len(names):
        return []  # not set yet, or an error of the declared rules
    report_of = {report.get("name") or "": report for report in reports}
    ordered, old_ordered = sorted(new, key=_order), sorted(old, key=_order)
    errors = []
    for i, target in enumerate(ordered):
        path = fields.index(_TARGETS, names.index(target.get("name") or ""))
        report = report_of.get(target.get("name") or "")
        errors += _target(target, report, path, _expected(i, ordered, old_ordered, progress), progress)
    return errors


def _order(target: Object) -> tuple[Any, ...]:
    """Return the key by which responders are ordered: priority (highest first), domain from its top, name.

    Upstream: SortTargetResponders.
    """
    domain, _, name = (target.get("name") or "").partition("/")
    priority = target.get("priority")
    return priority is None, -(priority or 0), _Domain(domain), name


class _Domain(tuple[str, ...]):
    """The labels of a domain from the top. A domain comes before those of which it is a part (`a.b` before `b`)."""

    def __new__(cls, domain: str) -> _Domain:
        """Split a domain at its dots."""
        return super().__new__(cls, reversed(domain.split(".")))

    def __lt__(self, other: tuple[str, ...]) -> bool:
        shared = min(len(self), len(other))
        if self[:shared] != other[:shared]:
            return self[:shared] < other[:shared]
        return len(self) > len(other)


def _expected(i: int, new: list[Object], old: list[Object], progress: Progress) -> tuple[frozenset[str], str]:
    """Return the states that a responder may have, and the reason for error texts.

    Args:
        i: its index in both lists.
        new: the responders in the order in which they act.
        old: the stored ones in that order, [] before they were set.
        progress: the state of the Eviction.
    """
    active = next((j for j, target in enumerate(old) if target.get("state") == "Active"), -1)
    changed = active >= 0 and new[active].get("state") != "Active"
    ended = progress.final or bool(old and old[-1].get("state") in _ENDED)
    if i < active or (old and active < 0 and ended):
        return frozenset({old[i].get("state") or ""}), "final state is immutable"
    if i == active and changed:
        return _ENDED, "this responder must reach a final state"
    if i == active:
        return (_ENDED, _FINISHED) if progress.final else (_ACTIVE, "the eviction request stays active")
    if (i == 0 and not old) or (i == active + 1 and changed):
        return (_INACTIVE, _FINISHED) if progress.final else (_ACTIVE, "this responder is next in line")
    return _INACTIVE, "the previously active has not finished processing"


def _target(
    target: Object, report: Object | None, path: str, expected: tuple[frozenset[str], str], progress: Progress
) -> list[FieldError]:
    """Return the errors of the priority and the state of one responder. Upstream: ValidateTargetResponder."""
    name, state, priority = target.get("name") or "", target.get("state") or "", target.get("priority")
    if report is None:
        text = f"{go_quote(name)} has to be tracked in {_RESPONDERS} first"
        return [fields.invalid(path, internal("TargetResponder", target), text)]
    errors = _priority(name, priority, f"{path}.priority")
    states, reason = expected
    if state not in states:
        text = f"must be one of: {', '.join(sorted(states))}, because {reason}"
        return [*errors, fields.invalid(f"{path}.state", state, text)]
    began, ended = report.get("startTime"), report.get("completionTime")
    if state != "Active" and began and not ended and not progress.final:
        last = parse(report.get("heartbeatTime") or began)
        if progress.moment < last + _SILENT_FOR - _SKEW:
            errors.append(fields.forbidden(f"{path}.state", _BUSY))
    if state == "Completed" and not ended:
        errors.append(fields.invalid(f"{path}.state", state, _NOT_COMPLETED))
    return errors


def _priority(name: str, priority: int | None, path: str) -> list[FieldError]:
    if priority is None or priority < 0:
        return []
    own = _PRIORITIES.get(name)
    if own is None:
        return [fields.invalid(path, priority, RESERVED_PRIORITY)] if priority < LOWEST_FREE_PRIORITY else []
    text = f"core k8s responder is expected to have priority: {own}"
    return [] if priority == own else [fields.invalid(path, priority, text)]


def _reports(new: list[Object], old: list[Object], targets: list[Object], moment: datetime) -> list[FieldError]:
    """Return the errors of `responders`. Upstream: ValidateEvictionStatusResponders."""
    names = {report.get("name") or "" for report in new}
    states = {target.get("name") or "": target.get("state") or "" for target in targets}
    if len(targets) != len(new):
        text = "must be the same length as status.targetResponders and contain the same keys"
        return [fields.invalid(_RESPONDERS, internal_list("ResponderStatus", new or None), text)]
    if not states.keys() <= names:
        text = "must contain the same keys as status.targetResponders"
        return [fields.invalid(_RESPONDERS, internal_list("ResponderStatus", new or None), text)]
    if len(new) > MAX_RESPONDERS or len(names) < len(new):
        return []  # an error of the declared rules
    stored = {report.get("name") or "": report for report in old}
    errors = []
    for i, report in enumerate(new):
        name = report.get("name") or ""
        path = fields.index(_RESPONDERS, i)
        errors += _report(report, stored.get(name), states.get(name, ""), path, moment)
    return errors


def _report(new: Object, old: Object | None, state: str, path: str, moment: datetime) -> list[FieldError]:
    """Return the errors of what one responder reports. Upstream: ValidateEvictionStatusResponder.

    Args:
        new: the report.
        old: the stored one, or None.
        state: the state of the responder.
        path: the field path of the report.
        moment: the time of the request.
    """
    if old is not None and state != "Active" and not same(new, old):
        return [fields.invalid(path, internal("ResponderStatus", new), IMMUTABLE)]
    stored = old or {}
    return (
        _start(new, stored, state, f"{path}.startTime", moment)
        + _heartbeat(new, stored, path, moment)
        + _expected_completion(new, stored, path, moment)
        + _completion(new, stored, path, moment)
    )


def _start(new: Object, old: Object, state: str, path: str, moment: datetime) -> list[FieldError]:
    value, stored = new.get("startTime"), old.get("startTime")
    if stored is not None:
        return []  # an error of the declared rules, if it changed
    if value is None:
        return [fields.required(path, "is required for an active responder")] if state == "Active" else []
    return [] if _is_near(value, moment) else [fields.invalid(path, value, _PRESENT)]


def _heartbeat(new: Object, old: Object, path: str, moment: datetime) -> list[FieldError]:
    value, stored, at = new.get("heartbeatTime"), old.get("heartbeatTime"), f"{path}.heartbeatTime"
    if value is None:
        return [] if stored is None else [fields.required(at, "is required once set")]
    if value == stored:
        return []
    if new.get("startTime") is not None and stored is not None and parse(value) < parse(stored):
        return [fields.invalid(at, value, "cannot be decreased")]
    if errors := _after_start(new, value, at, path):
        return errors
    return [] if _is_near(value, moment) else [fields.invalid(at, value, _PRESENT)]


def _expected_completion(new: Object, old: Object, path: str, moment: datetime) -> list[FieldError]:
    value, at = new.get("expectedCompletionTime"), f"{path}.expectedCompletionTime"
    if value is None or value == old.get("expectedCompletionTime"):
        return []
    if errors := _after_start(new, value, at, path):
        return errors
    if parse(value) < moment - _SKEW:
        return [fields.invalid(at, value, "cannot be set to the past time")]
    return [fields.invalid(at, value, "must complete within 10 years")] if parse(value) > moment + _LATEST else []


def _completion(new: Object, old: Object, path: str, moment: datetime) -> list[FieldError]:
    value, stored, at = new.get("completionTime"), old.get("completionTime"), f"{path}.completionTime"
    if value is None or (stored is not None and stored != value):
        return []  # unset, or an error of the declared rules
    if errors := _after_start(new, value, at, path):
        return errors
    return [] if stored is not None or _is_near(value, moment) else [fields.invalid(at, value, _PRESENT)]


def _after_start(report: Object, value: str, at: str, path: str) -> list[FieldError]:
    """Return an error for a time before the start of the responder, or of a responder that has not started.

    Args:
        report: the report of the responder.
        value: the time.
        at: its field path.
        path: the field path of the report.
    """
    began = report.get("startTime")
    if began is None:
        return [fields.invalid(at, value, f"cannot be set before {path}.startTime is set")]
    if parse(value) < parse(began):
        return [fields.invalid(at, value, f"must occur after {path}.startTime")]
    return []


def _is_near(value: str, moment: datetime) -> bool:
    return abs(parse(value) - moment) < _SKEW
