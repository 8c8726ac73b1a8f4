"""Checks that every kind of the listed groups has its own strategy, and that its definition agrees with the
strategy.
"""

import itertools
from typing import Any, cast

import pytest

from tetrapod.core.admissionregistration import resources as admissionregistration
from tetrapod.core.apps import resources as apps
from tetrapod.core.autoscaling import resources as autoscaling
from tetrapod.core.batch import resources as batch
from tetrapod.core.certificates import resources as certificates
from tetrapod.core.coordination import resources as coordination
from tetrapod.core.discovery import resources as discovery
from tetrapod.core.events import resources as events
from tetrapod.core.flowcontrol import resources as flowcontrol
from tetrapod.core.kind_strategy import KindStrategy
from tetrapod.core.networking import resources as networking
from tetrapod.core.node import resources as node
from tetrapod.core.policy import resources as policy
from tetrapod.core.resource import resources as resource
from tetrapod.core.scheduling import resources as scheduling
from tetrapod.core.storage import resources as storage
from tetrapod.core.storagemigration import resources as storagemigration
from tetrapod.generic.registry.context import Context
from tetrapod.generic.registry.definition import ResourceDefinition

_NOBODY = cast(Any, None)
"""The authorizer that decides whether the user may read referenced objects; it is not called in these tests."""
_DEFINITIONS = {
    f"{d.group}/{d.resource}": d
    for d in itertools.chain(
        apps.definitions(),
        autoscaling.definitions(),
        batch.definitions(),
        networking.definitions(),
        policy.definitions(),
        storage.definitions(),
        discovery.definitions(),
        storagemigration.definitions(),
        certificates.definitions(None),
        coordination.definitions(),
        events.definitions(3600),
        node.definitions(),
        scheduling.definitions(),
        flowcontrol.definitions(),
        admissionregistration.definitions(_NOBODY),
        resource.definitions(_NOBODY),
    )
}


@pytest.mark.parametrize("name", sorted(_DEFINITIONS))
def test_an_empty_object_is_validated_without_an_exception(name: str) -> None:
    strategy = _DEFINITIONS[name].strategy
    obj = {"apiVersion": "x/v1", "kind": _DEFINITIONS[name].kind, "metadata": {"name": "a", "namespace": "n"}}
    strategy.default(obj, _DEFINITIONS[name].storage_version)
    assert isinstance(strategy.validate(Context(), obj), list)
    assert isinstance(strategy.validate_update(Context(), obj, obj), list)
    assert isinstance(strategy.warnings_on_create(Context(), obj), list)


def test_every_kind_strategy_has_validation() -> None:
    strategies = {name: definition.strategy for name, definition in _DEFINITIONS.items()}
    validated = {
        name: strategy.validator is not None
        for name, strategy in strategies.items()
        if isinstance(strategy, KindStrategy)
    }
    assert len(validated) >= 30
    assert [name for name, has_validation in validated.items() if not has_validation] == []


@pytest.mark.parametrize(
    ("name", "allowed"), [("coordination.k8s.io/leases", False), ("policy/poddisruptionbudgets", False)]
)
def test_updates_that_need_a_version(name: str, allowed: bool) -> None:
    assert _DEFINITIONS[name].strategy.allow_unconditional_update is allowed


_RETURNED = {
    "resource.k8s.io/deviceclasses",
    "resource.k8s.io/resourceclaims",
    "resource.k8s.io/resourceclaimtemplates",
    "resource.k8s.io/resourcepoolstatusrequests",
    "resource.k8s.io/resourceslices",
    "storage.k8s.io/csidrivers",
    "storage.k8s.io/csinodes",
    "storage.k8s.io/storageclasses",
    "storage.k8s.io/volumeattachments",
    "storage.k8s.io/volumeattributesclasses",
}


def test_a_delete_answers_with_the_object_of_these_kinds_only() -> None:
    def returns(definition: ResourceDefinition) -> bool:
        return definition.strategy.return_deleted_object

    assert {name for name, definition in _DEFINITIONS.items() if returns(definition)} == _RETURNED
