"""Tests of warnings about pod templates: upstream's texts, for the requests for which upstream sends them."""

from __future__ import annotations

from typing import Any

from tetrapod.core.apps import stateful_sets
from tetrapod.core.podspec import warnings as podspec_warnings
from tetrapod.core.podspec.warnings import template_warnings
from tetrapod.core.v1 import replication_controllers

ARCH = "beta.kubernetes.io/arch"


def template(**spec: Any) -> dict[str, Any]:
    return {"metadata": {}, "spec": spec}


def controller(generation: int, *, old_arch: bool) -> dict[str, Any]:
    spec = {"template": template(nodeSelector={ARCH: "arm64"} if old_arch else {})}
    return {"metadata": {"name": "c", "generation": generation}, "spec": spec}


def test_a_template_is_looked_at_in_every_new_generation_though_it_stays() -> None:
    before, after = controller(1, old_arch=True), controller(2, old_arch=True)
    assert any(ARCH in text for text in podspec_warnings.replicated_warnings(after, before))
    assert podspec_warnings.replicated_warnings(before, before) == []


def test_a_replication_controllers_old_template_is_looked_at() -> None:
    assert replication_controllers.warnings(controller(2, old_arch=False), controller(1, old_arch=True))
    assert not replication_controllers.warnings(controller(2, old_arch=True), controller(1, old_arch=False))


def test_claims_are_named_otherwise_in_an_update() -> None:
    claim = {"metadata": {"name": "d"}, "spec": {"resources": {"requests": {"storage": "500m"}}}}
    obj = {"metadata": {"generation": 1}, "spec": {"volumeClaimTemplates": [claim]}}
    assert stateful_sets.warnings(obj, None)[0].startswith("spec.volumeClaimTemplates[0].resources")
    assert stateful_sets.warnings(obj, obj)[0].startswith("spec.volumeClaimTemplates[0].Spec.resources")


def test_a_variable_that_is_only_itself_hides_the_one_before() -> None:
    env = [{"name": "A", "value": "x"}, {"name": "A", "value": "$(A)"}, {"name": "A", "value": "$(A)y"}]
    found = template_warnings(template(containers=[{"name": "c", "env": env}]), "spec.template")
    assert len(found) == 1
    assert "env[1]" in found[0]


def test_an_annotation_equal_to_the_pods_profile_causes_no_warning() -> None:
    key = "container.apparmor.security.beta.kubernetes.io/c"
    common = {"appArmorProfile": {"type": "RuntimeDefault"}}
    for profile, count in (("runtime/default", 0), ("unconfined", 1)):
        given = template(containers=[{"name": "c"}], securityContext=common)
        given["metadata"]["annotations"] = {key: profile}
        assert len(template_warnings(given, "spec.template")) == count


def test_projected_volumes_without_sources_or_with_overlapping_paths_cause_warnings() -> None:
    certificate = {"keyPath": "a", "certificateChainPath": "a/b"}
    volume = {"name": "v", "projected": {"sources": [{}, {"podCertificate": certificate}]}}
    assert template_warnings(template(volumes=[volume]), "spec.template") == [
        'volume "v" (Projected) has no sources provided',
        'volume "v" (Projected): overlapping paths: "a" (PodCertificate key) with "a/b" (PodCertificate chain)',
    ]
