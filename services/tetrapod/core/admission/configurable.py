"""Constructors of core's plugins that read a configuration file; each imports the plugin's module when it is called.

A constructor takes the file from the `--admission-control-config-file` of the process. All of them raise `ValueError`
if the file is invalid.
"""

from __future__ import annotations

from tetrapod.generic.admission.interface import Plugin
from tetrapod.generic.admission.plugin_dependencies import PluginDependencies


def event_rate_limit(dependencies: PluginDependencies) -> Plugin:
    """Create EventRateLimit with the limits of its configuration file; without a file it limits nothing.

    Raises:
        ValueError: the file cannot be read or is invalid.
    """
    from tetrapod.core.admission.event_rate_limit import EventRateLimit, read_limits

    return EventRateLimit(read_limits(dependencies.configuration.for_plugin("EventRateLimit")))


def image_policy_webhook(dependencies: PluginDependencies) -> Plugin:
    """Create ImagePolicyWebhook, which requires a configuration file.

    Raises:
        ValueError: the file is missing, cannot be read or is invalid.
    """
    from tetrapod.core.admission.image_policy import ImagePolicyWebhook, read_policy

    return ImagePolicyWebhook(
        read_policy(dependencies.configuration.for_plugin("ImagePolicyWebhook")), dependencies.webhooks.pool
    )


def pod_node_selector(dependencies: PluginDependencies) -> Plugin:
    """Create PodNodeSelector with the selectors of its configuration file, if there is one."""
    from tetrapod.core.admission.pod_node_selector import PodNodeSelector, read_selectors

    return PodNodeSelector(
        dependencies.storages, read_selectors(dependencies.configuration.for_plugin("PodNodeSelector"))
    )


def pod_toleration_restriction(dependencies: PluginDependencies) -> Plugin:
    """Create PodTolerationRestriction with the tolerations of its configuration file, if there is one.

    Raises:
        ValueError: the file cannot be read or is invalid.
    """
    from tetrapod.core.admission.pod_toleration_restriction import PodTolerationRestriction, read_tolerations

    configured = dependencies.configuration.for_plugin("PodTolerationRestriction")
    return PodTolerationRestriction(dependencies.storages, read_tolerations(configured))


def pod_security(dependencies: PluginDependencies) -> Plugin:
    """Create PodSecurity with the defaults and exemptions of its configuration file, if there is one.

    Most servers have no such file, so the module that reads it is imported only if needed.

    Raises:
        ValueError: the file cannot be read or is invalid.
    """
    from tetrapod.core.admission.pod_security import PodSecurity

    configured = dependencies.configuration.for_plugin("PodSecurity")
    if not configured:
        return PodSecurity(dependencies.storages)
    from tetrapod.core.admission.pod_security_configuration import read_policy

    return PodSecurity(dependencies.storages, *read_policy(configured))


def resource_quota(dependencies: PluginDependencies) -> Plugin:
    """Create ResourceQuota with the limited resources of its configuration file, if there is one.

    Most servers have no such file, so the module that reads it is imported only if needed.

    Raises:
        ValueError: the file cannot be read or is invalid.
    """
    from tetrapod.core.admission.quota_evaluator import CoreEvaluator
    from tetrapod.generic.admission.plugins.resource_quota import ResourceQuota

    evaluator = CoreEvaluator(dependencies.storages)
    configured = dependencies.configuration.for_plugin("ResourceQuota")
    if configured is None:
        return ResourceQuota(dependencies.storages, evaluator)
    from tetrapod.core.admission.limited_resources import read_limited

    return ResourceQuota(dependencies.storages, evaluator, read_limited(configured))
