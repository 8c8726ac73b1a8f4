"""The names of admission plugins in flags."""

from __future__ import annotations

import pytest

from integration.core.conftest import Core
from tetrapod.core.admission.plugins import ORDERED, plugin_flag_errors, plugins
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies
from tetrapod.generic.authorization.interface import Authorizer
from tetrapod.generic.client.inprocess import in_process_client
from tetrapod.generic.lifecycle import Lifecycle
from tetrapod.generic.storage.interface import StorageFactory
from tetrapod.generic.webhook.client import WebhookClient
from tetrapod.generic.webhook.services import StorageServiceResolver


@pytest.fixture
def dependencies(core: Core, storages: StorageFactory, allow_all: Authorizer) -> PluginDependencies:
    webhooks = WebhookClient(StorageServiceResolver(storages, by_endpoints=False))
    return PluginDependencies(
        storages, allow_all, in_process_client(core.director, "kube-apiserver"), Lifecycle().background, webhooks
    )


@pytest.mark.parametrize(
    ("enabled", "disabled", "errors"),
    [
        (
            ["Nope"],
            ["Zip"],
            ['enable-admission-plugins plugin "Nope" is unknown', 'disable-admission-plugins plugin "Zip" is unknown'],
        ),
        (
            ["Priority"],
            ["Priority"],
            ["[Priority] in enable-admission-plugins and disable-admission-plugins overlapped"],
        ),
        (["AlwaysAdmit", "EventRateLimit"], ["PodGroupProtection"], []),
    ],
)
def test_unknown_plugins_are_rejected(enabled: list[str], disabled: list[str], errors: list[str]) -> None:
    assert plugin_flag_errors(enabled, disabled) == errors


def test_plugins_have_upstreams_order_and_can_be_disabled(dependencies: PluginDependencies) -> None:
    made = plugins(
        dependencies, ["AlwaysPullImages", "AlwaysAdmit", "ServiceAccount"], ["EventRateLimit", "PodSecurity"]
    )
    names = [plugin.name for plugin in made]
    assert names[:4] == ["NamespaceLifecycle", "LimitRanger", "ServiceAccount", "TaintNodesByCondition"]
    assert names.index("AlwaysPullImages") == 4
    assert "PodSecurity" not in names
    assert names == [name for name in ORDERED if name in names]
