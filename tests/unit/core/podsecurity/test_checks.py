"""Tests of each Pod Security Standards check and the versions it applies to (texts: upstream's check_*_test.go)."""

from __future__ import annotations

import pytest

from tetrapod.core.podsecurity.evaluator import CHECKS, NEWEST, details, evaluate, reasons
from tetrapod.core.podsecurity.policy import LevelVersion
from tetrapod.machinery.gvk import Object


def container(name: str = "a", **context: object) -> Object:
    return {"name": name, "image": "nginx", "securityContext": context}


def violations(level: str, spec: Object, version: str = "latest", annotations: dict[str, str] | None = None) -> str:
    return details(evaluate(LevelVersion(level, version), {"annotations": annotations or {}}, spec))


GOOD: Object = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [container(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"]})],
}


def test_a_careful_pod_is_restricted_in_every_version() -> None:
    for minor in range(NEWEST + 1):
        assert not violations("restricted", GOOD, f"v1.{minor}")
    assert not violations("restricted", GOOD)
    assert not violations("restricted", GOOD, "v1.999")


def test_privileged_forbids_nothing() -> None:
    assert not violations("privileged", {"hostPID": True})


def test_the_checks_have_ids_of_their_own_and_override_what_exists() -> None:
    ids = [check.id for check in CHECKS]
    assert len(ids) == len(set(ids)) == 19
    assert {check.overrides for check in CHECKS} <= {*ids, ""}


SELINUX = 'set forbidden securityContext.seLinuxOptions: types "bar", "foo"; user may not be set; role may not be set'


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"hostIPC": True, "hostPID": True, "hostNetwork": True},
            "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
        ),
        ({"volumes": [{"name": "v", "hostPath": {}}]}, 'hostPath volumes (volume "v")'),
        ({"volumes": [{"name": n, "hostPath": {"path": "/"}} for n in "vw"]}, 'hostPath volumes (volumes "v", "w")'),
        (
            {"containers": [{"name": "a", "ports": [{"hostPort": 80}, {"hostPort": 0}, {"hostPort": 443}]}]},
            'hostPort (container "a" uses hostPorts 443, 80)',
        ),
        (
            {
                "initContainers": [{"name": "i", "ports": [{"hostPort": 1}]}],
                "containers": [{"name": "a", "ports": [{"hostPort": 1}]}],
            },
            'hostPort (containers "i", "a" use hostPort 1)',
        ),
        (
            {
                "containers": [
                    {
                        "name": "a",
                        "lifecycle": {"preStop": {"tcpSocket": {"host": "x"}}},
                        "startupProbe": {"httpGet": {"host": "y"}},
                    }
                ]
            },
            'probe or lifecycle host (container "a" uses probe or lifecycle hosts "x", "y")',
        ),
        (
            {
                "securityContext": {"windowsOptions": {"hostProcess": True}},
                "containers": [container(windowsOptions={"hostProcess": True})],
            },
            'hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true)',
        ),
        (
            {"ephemeralContainers": [container(privileged=True)]},
            'privileged (container "a" must not set securityContext.privileged=true)',
        ),
        (
            {"containers": [container(capabilities={"add": ["SYS_ADMIN", "CHOWN", "NET_RAW"]})]},
            (
                'non-default capabilities (container "a" must not include "NET_RAW", "SYS_ADMIN" in '
                "securityContext.capabilities.add)"
            ),
        ),
        (
            {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
            'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
        ),
        (
            {
                "securityContext": {"seLinuxOptions": {"type": "foo", "user": "u"}},
                "containers": [
                    container("e", seLinuxOptions={"type": "bar"}),
                    container("g", seLinuxOptions={"role": "r"}),
                ],
            },
            f'seLinuxOptions (pod and containers "e", "g" {SELINUX})',
        ),
        (
            {"containers": [container(procMount="Unmasked")]},
            'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
        ),
        ({"securityContext": {"sysctls": [{"name": "b"}, {"name": "a"}]}}, "forbidden sysctls (b, a)"),
        (
            {"containers": [container(seccompProfile={"type": "Unconfined"})]},
            'seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
    ],
)
def test_the_level_baseline_forbids_privileges(spec: Object, expected: str) -> None:
    assert violations("baseline", spec) == expected


def test_baseline_forbids_annotations_that_unconfine() -> None:
    prefix = "container.apparmor.security.beta.kubernetes.io/"
    annotations = {
        f"{prefix}{name}": value
        for name, value in {"a": "", "b": "runtime/default", "d": "localhost/x", "e": "unconfined"}.items()
    }
    expected = f'forbidden AppArmor profile (annotation must not set AppArmor profile type to "{prefix}e="unconfined"")'
    assert violations("baseline", {}, annotations=annotations) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            GOOD
            | {
                "volumes": [
                    {"name": "v", "nfs": {}},
                    {"name": "w"},
                    {"name": "i", "image": {}},
                    {"name": "h", "hostPath": {}},
                ]
            },
            'restricted volume types (volumes "v", "w", "h" use restricted volume types "hostPath", "nfs", "unknown")',
        ),
        (
            GOOD | {"securityContext": {"seccompProfile": {"type": "Localhost"}, "runAsUser": 0}},
            'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), '
            "runAsUser=0 (pod must not set runAsUser=0)",
        ),
        (
            GOOD | {"securityContext": {"runAsNonRoot": True}},
            (
                'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to '
                '"RuntimeDefault" or "Localhost")'
            ),
        ),
        (
            GOOD | {"hostPID": True, "containers": [container("b", capabilities={"add": ["CHOWN"]}), container("c")]},
            "host namespaces (hostPID=true), "
            'allowPrivilegeEscalation != false (containers "b", "c" must set '
            'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "b", '
            '"c" must set securityContext.capabilities.drop=["ALL"]; container "b" must not include "CHOWN" in '
            "securityContext.capabilities.add)",
        ),
    ],
)
def test_restricted_forbids_more_and_says_baseline_first(spec: Object, expected: str) -> None:
    assert violations("restricted", spec) == expected


@pytest.mark.parametrize(
    ("level", "spec", "first_allowed"),
    [
        ("baseline", {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_local_reserved_ports"}]}}, 27),
        ("baseline", {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_keepalive_time"}]}}, 29),
        ("baseline", {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}}, 32),
        ("baseline", {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_notsent_lowat"}]}}, 37),
        ("baseline", {"securityContext": {"seLinuxOptions": {"type": "container_engine_t"}}}, 31),
        ("baseline", {"hostUsers": False, "containers": [container(procMount="Unmasked")]}, 35),
        (
            "restricted",
            GOOD | {"hostUsers": False, "securityContext": {"runAsUser": 0, "seccompProfile": {"type": "Localhost"}}},
            35,
        ),
        (
            "restricted",
            {"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": True}, "containers": [container()]},
            25,
        ),
    ],
)
def test_later_versions_allow_what_became_safe(level: str, spec: Object, first_allowed: int) -> None:
    assert violations(level, spec, f"v1.{first_allowed - 1}")
    assert not violations(level, spec, f"v1.{first_allowed}")


@pytest.mark.parametrize(
    ("level", "spec", "first_forbidden"),
    [
        ("baseline", {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"host": "x"}}}]}, 34),
        ("restricted", GOOD | {"containers": [container(capabilities={"drop": ["ALL"]})]}, 8),
        ("restricted", GOOD | {"securityContext": {"runAsNonRoot": True}}, 19),
        ("restricted", GOOD | {"containers": [container(allowPrivilegeEscalation=False)]}, 22),
        ("restricted", GOOD | {"securityContext": GOOD["securityContext"] | {"runAsUser": 0}}, 23),
    ],
)
def test_later_versions_forbid_what_earlier_ones_did_not_know(level: str, spec: Object, first_forbidden: int) -> None:
    assert not violations(level, spec, f"v1.{first_forbidden - 1}")
    assert violations(level, spec, f"v1.{first_forbidden}")


def test_seccomp_was_an_annotation_before_1_19() -> None:
    annotations = {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}
    expected = 'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")'
    assert violations("baseline", {}, "v1.18", annotations) == expected
    assert not violations("baseline", {}, "v1.19", annotations)


def test_an_unmasked_proc_stays_forbidden_to_restricted_pods() -> None:
    spec = {"hostUsers": False, "containers": [container(procMount="Unmasked")]}
    assert "procMount" in reasons(evaluate(LevelVersion("restricted", "latest"), {}, spec))
