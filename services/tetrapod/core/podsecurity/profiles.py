"""Checks of AppArmor profiles and SELinux options.

Upstream: k8s.io/pod-security-admission/policy (check_appArmorProfile.go, check_seLinuxOptions.go).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from tetrapod.core.podsecurity.check import (
    Check,
    CheckPod,
    Violation,
    containers,
    names,
    plural,
    quoted,
    security_option,
    setters,
)
from tetrapod.core.podsecurity.policy import BASELINE
from tetrapod.machinery.golang.quoting import go_quote
from tetrapod.machinery.gvk import Object

_APP_ARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})


def _app_armor(metadata: Object, spec: Object) -> Violation | None:
    violating = [each for each in containers(spec) if _app_armor_type(each)]
    subject = setters(bool(_app_armor_type(spec)), names(violating))
    values = sorted({kind for each in (spec, *violating) if (kind := _app_armor_type(each))})
    annotations = sorted(
        f"{name}={go_quote(value)}"
        for name, value in (metadata.get("annotations") or {}).items()
        if name.startswith(_APP_ARMOR_ANNOTATION) and not _is_allowed(value)
    )
    if annotations:
        values += annotations
        subject = " and ".join(filter(None, (subject, plural(annotations, "annotation"))))
    if not subject:
        return None
    return Violation(
        plural(values, "forbidden AppArmor profile"),
        f"{subject} must not set AppArmor profile type to {quoted(values)}",
    )


def _app_armor_type(owner: Object) -> str:
    """Return the AppArmor profile type of a pod spec or container if it is forbidden, else ""."""
    kind: str = (security_option(owner, "appArmorProfile") or {}).get("type", "RuntimeDefault")
    return "" if kind in ("RuntimeDefault", "Localhost") else kind


def _is_allowed(annotation: str) -> bool:
    """Return whether the value of an AppArmor annotation names an allowed profile."""
    return annotation in ("", "runtime/default") or annotation.startswith("localhost/")


def _selinux(allowed: Collection[str]) -> CheckPod:
    """Return the check of SELinux options, which reports other types than `allowed`, and any user or role."""

    def check(metadata: Object, spec: Object) -> Violation | None:
        def is_bad(owner: Object) -> bool:
            options = security_option(owner, "seLinuxOptions") or {}
            return options.get("type", "") not in allowed or bool(options.get("user") or options.get("role"))

        violating = list(filter(is_bad, containers(spec)))
        subject = setters(is_bad(spec), names(violating))
        if not subject:
            return None
        violating_options = [security_option(owner, "seLinuxOptions") or {} for owner in (spec, *violating)]
        types = sorted({options.get("type", "") for options in violating_options} - set(allowed))
        details = [f"{plural(types, 'type')} {quoted(types)}"] if types else []
        details += [
            f"{name} may not be set"
            for name in ("user", "role")
            if any(options.get(name) for options in violating_options)
        ]
        return Violation(
            "seLinuxOptions", f"{subject} set forbidden securityContext.seLinuxOptions: {'; '.join(details)}"
        )

    return check


CHECKS: Final = (
    Check("appArmorProfile", BASELINE, {0: _app_armor}),
    Check(
        "seLinuxOptions", BASELINE, {0: _selinux(_SELINUX_TYPES), 31: _selinux(_SELINUX_TYPES | {"container_engine_t"})}
    ),
)
