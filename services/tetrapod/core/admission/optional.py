"""Constructors of core's configurable plugins, which import their modules only when they are used."""

from __future__ import annotations

from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.surroundings import Surroundings


def event_rate_limit(surroundings: Surroundings) -> Plugin:
    """Return the plugin with its configuration."""
    from tetrapod.core.admission.event_rate_limit import EventRateLimit, read_limits

    return EventRateLimit(read_limits(surroundings.configuration.of("EventRateLimit")))


def image_policy_webhook(surroundings: Surroundings) -> Plugin:
    """Return the plugin with its configuration."""
    from tetrapod.core.admission.image_policy import ImagePolicyWebhook, read_policy

    return ImagePolicyWebhook(read_policy(surroundings.configuration.of("ImagePolicyWebhook")), surroundings.webhooks.pool)


def pod_node_selector(surroundings: Surroundings) -> Plugin:
    """Return the plugin with its configuration."""
    from tetrapod.core.admission.pod_node_selector import PodNodeSelector, read_selectors

    return PodNodeSelector(surroundings.storages, read_selectors(surroundings.configuration.of("PodNodeSelector")))


def pod_toleration_restriction(surroundings: Surroundings) -> Plugin:
    """Return the plugin with its configuration."""
    from tetrapod.core.admission.pod_toleration_restriction import PodTolerationRestriction, read_tolerations

    configured = surroundings.configuration.of("PodTolerationRestriction")
    return PodTolerationRestriction(surroundings.storages, read_tolerations(configured))


def pod_security(surroundings: Surroundings) -> Plugin:
    """Return the plugin, which is on by default; the module for its configuration is imported only if there is one."""
    from tetrapod.core.admission.pod_security import PodSecurity

    configured = surroundings.configuration.of("PodSecurity")
    if not configured:
        return PodSecurity(surroundings.storages)
    from tetrapod.core.admission.pod_security_configuration import read_policy

    return PodSecurity(surroundings.storages, *read_policy(configured))


def resource_quota(surroundings: Surroundings) -> Plugin:
    """Return the plugin, which is on by default; the module for its configuration is imported only if there is one."""
    from tetrapod.core.admission.quota_evaluator import CoreEvaluator
    from tetrapod.generic.admission.plugins.resource_quota import ResourceQuota

    evaluator = CoreEvaluator(surroundings.storages)
    configured = surroundings.configuration.of("ResourceQuota")
    if configured is None:
        return ResourceQuota(surroundings.storages, evaluator)
    from tetrapod.core.admission.limited_resources import read_limited

    return ResourceQuota(surroundings.storages, evaluator, read_limited(configured))
