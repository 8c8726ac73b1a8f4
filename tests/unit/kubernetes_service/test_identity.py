"""The identity of an API server, which names its Lease."""

from __future__ import annotations

from tetrapod.generic.configuration.server_identity import identity_of


def test_the_identity_is_the_one_that_kube_apiserver_has_on_the_host() -> None:
    assert identity_of("node-1") == "apiserver-lgabes5ywnaqeagh5dny4zlzs4"


def test_servers_of_one_host_have_different_identities() -> None:
    assert len({identity_of("node-1"), identity_of("node-1", "core:6444"), identity_of("node-2")}) == 3
