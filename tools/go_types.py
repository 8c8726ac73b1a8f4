"""Facts about Go types that the OpenAPI documents lack and that re-encoding an object depends on.

A scalar that is a pointer in Go is written if it was given, zero or not; a plain one with `omitempty` is omitted at
zero. The facts are taken from the published API conventions and types (k8s.io/api), and the tests of the decoder
compare them with recorded responses. Names are `group.version.Type` as in the names of definitions, without their
common prefixes. Only `generate_types.py` uses this module.
"""

from __future__ import annotations

POINTERS = """
admissionregistration.v1.MatchResources matchPolicy
admissionregistration.v1.MutatingAdmissionPolicySpec failurePolicy
admissionregistration.v1.MutatingWebhook failurePolicy matchPolicy reinvocationPolicy sideEffects timeoutSeconds
admissionregistration.v1.NamedRuleWithOperations scope
admissionregistration.v1.ParamRef parameterNotFoundAction
admissionregistration.v1.RuleWithOperations scope
admissionregistration.v1.ServiceReference path port
admissionregistration.v1.ValidatingAdmissionPolicySpec failurePolicy
admissionregistration.v1.ValidatingWebhook failurePolicy matchPolicy sideEffects timeoutSeconds
admissionregistration.v1.Validation reason
admissionregistration.v1.WebhookClientConfig url
apps.v1.DaemonSetSpec revisionHistoryLimit
apps.v1.DaemonSetStatus collisionCount
apps.v1.DeploymentSpec progressDeadlineSeconds replicas revisionHistoryLimit
apps.v1.DeploymentStatus collisionCount terminatingReplicas
apps.v1.ReplicaSetSpec replicas
apps.v1.ReplicaSetStatus terminatingReplicas
apps.v1.RollingUpdateStatefulSetStrategy partition
apps.v1.StatefulSetSpec replicas revisionHistoryLimit
apps.v1.StatefulSetStatus collisionCount
authentication.v1.TokenRequestSpec expirationSeconds
autoscaling.v1.HorizontalPodAutoscalerSpec minReplicas targetCPUUtilizationPercentage
autoscaling.v1.HorizontalPodAutoscalerStatus currentCPUUtilizationPercentage observedGeneration
autoscaling.v2.HPAScalingRules selectPolicy stabilizationWindowSeconds
autoscaling.v2.HorizontalPodAutoscalerSpec minReplicas
autoscaling.v2.HorizontalPodAutoscalerCondition observedGeneration
autoscaling.v2.HorizontalPodAutoscalerStatus observedGeneration
autoscaling.v2.MetricTarget averageUtilization
autoscaling.v2.MetricValueStatus averageUtilization
batch.v1.CronJobSpec failedJobsHistoryLimit startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone
batch.v1.JobSpec activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy \
manualSelector
batch.v1.JobSpec maxFailedIndexes parallelism podReplacementPolicy suspend ttlSecondsAfterFinished
batch.v1.JobStatus failedIndexes ready terminating
batch.v1.PodFailurePolicyOnExitCodesRequirement containerName
batch.v1.SuccessPolicyRule succeededCount succeededIndexes
certificates.v1.CertificateSigningRequestSpec expirationSeconds
certificates.v1.PodCertificateRequestSpec maxExpirationSeconds
coordination.v1.LeaseSpec holderIdentity leaseDurationSeconds leaseTransitions preferredHolder strategy
core.v1.AppArmorProfile localhostProfile
core.v1.AzureDiskVolumeSource cachingMode fsType kind readOnly
core.v1.CSIVolumeSource fsType readOnly
core.v1.ClientIPConfig timeoutSeconds
core.v1.ClusterTrustBundleProjection name optional signerName user
core.v1.ConfigMap immutable
core.v1.ConfigMapEnvSource optional
core.v1.ConfigMapKeySelector optional
core.v1.ConfigMapProjection optional
core.v1.ConfigMapVolumeSource defaultMode defaultUser optional
core.v1.Container restartPolicy
core.v1.ContainerStatus started stopSignal
core.v1.DownwardAPIVolumeFile mode user
core.v1.DownwardAPIVolumeSource defaultMode defaultUser
core.v1.EmptyDirVolumeSource mode
core.v1.EndpointAddress nodeName
core.v1.EndpointPort appProtocol
core.v1.EphemeralContainer restartPolicy
core.v1.EvictionResponder priority
core.v1.FCVolumeSource lun
core.v1.FileKeySelector optional
core.v1.GRPCAction mode service
core.v1.GlusterfsPersistentVolumeSource endpointsNamespace
core.v1.HTTPGetAction protocol
core.v1.HostPathVolumeSource type
core.v1.ISCSIPersistentVolumeSource initiatorName
core.v1.ISCSIVolumeSource initiatorName
core.v1.KeyToPath mode user
core.v1.Lifecycle stopSignal
core.v1.LoadBalancerIngress ipMode
core.v1.LocalVolumeSource fsType
core.v1.NodeFeatures supplementalGroupsPolicy
core.v1.NodeRuntimeHandlerFeatures recursiveReadOnlyMounts userNamespaces
core.v1.NodeSwapStatus capacity
core.v1.NodeSystemInfo runningInUserNamespace
core.v1.PersistentVolumeClaimSpec storageClassName volumeAttributesClassName volumeMode
core.v1.PersistentVolumeClaimStatus currentVolumeAttributesClassName
core.v1.PersistentVolumeSpec volumeAttributesClassName volumeMode
core.v1.PodCertificateProjection maxExpirationSeconds user
core.v1.PodDNSConfigOption value
core.v1.PodResourceClaim resourceClaimName resourceClaimTemplateName
core.v1.PodResourceClaimStatus resourceClaimName
core.v1.PodSchedulingGroup podGroupName
core.v1.PodSecurityContext fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy \
supplementalGroupsPolicy
core.v1.PodSpec activeDeadlineSeconds automountServiceAccountToken enableServiceLinks hostUsers hostnameOverride \
preemptionPolicy priority
core.v1.PodSpec runtimeClassName setHostnameAsFQDN shareProcessNamespace terminationGracePeriodSeconds
core.v1.PortStatus error
core.v1.Probe terminationGracePeriodSeconds
core.v1.ProjectedVolumeSource defaultMode defaultUser
core.v1.ReplicationControllerSpec replicas
core.v1.ResourceHealth message
core.v1.SeccompProfile localhostProfile
core.v1.Secret immutable
core.v1.SecretEnvSource optional
core.v1.SecretKeySelector optional
core.v1.SecretProjection optional
core.v1.SecretVolumeSource defaultMode defaultUser optional
core.v1.SecurityContext allowPrivilegeEscalation privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot \
runAsUser
core.v1.ServiceAccount automountServiceAccountToken
core.v1.ServiceAccountTokenProjection expirationSeconds user
core.v1.ServicePort appProtocol
core.v1.ServiceSpec allocateLoadBalancerNodePorts internalTrafficPolicy ipFamilyPolicy loadBalancerClass \
trafficDistribution
core.v1.Toleration tolerationSeconds
core.v1.TopologySpreadConstraint minDomains nodeAffinityPolicy nodeTaintsPolicy
core.v1.TypedObjectReference namespace
core.v1.VolumeMount mountPropagation recursiveReadOnly
core.v1.VolumeMountStatus recursiveReadOnly
core.v1.WindowsSecurityContextOptions gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName
discovery.v1.Endpoint hostname nodeName zone
discovery.v1.EndpointConditions ready serving terminating
discovery.v1.EndpointPort appProtocol name port protocol
flowcontrol.v1.ExemptPriorityLevelConfiguration lendablePercent nominalConcurrencyShares
flowcontrol.v1.LimitedPriorityLevelConfiguration borrowingLimitPercent lendablePercent nominalConcurrencyShares
networking.v1.HTTPIngressPath pathType
networking.v1.IngressClassParametersReference apiGroup namespace scope
networking.v1.IngressPortStatus error
networking.v1.IngressSpec ingressClassName
networking.v1.NetworkPolicyPort endPort protocol
policy.v1.PodDisruptionBudgetSpec unhealthyPodEvictionPolicy
resource.v1.AllocatedDeviceStatus shareID
resource.v1.Device allNodes allowMultipleAllocations bindsToNode nodeName
resource.v1.DeviceAttribute bool int string version
resource.v1.DeviceClassSpec extendedResourceName
resource.v1.DeviceConstraint distinctAttribute matchAttribute
resource.v1.DeviceRequestAllocationResult adminAccess shareID
resource.v1.DeviceTaintSelector device driver pool
resource.v1.DeviceToleration tolerationSeconds
resource.v1.ExactDeviceRequest adminAccess
resource.v1.NodeAllocatableMapping capacityKey
resource.v1.ResourceSliceSpec allNodes nodeName partitionTypeAttribute perDeviceNodeSelection
scheduling.v1.PriorityClass preemptionPolicy
scheduling.v1alpha3.WorkloadPodGroupGangSchedulingPolicy minCount
scheduling.v1alpha3.WorkloadPodGroupResourceClaim resourceClaimName resourceClaimTemplateName
storage.v1.CSIDriverSpec attachRequired fsGroupPolicy nodeAllocatableUpdatePeriodSeconds podInfoOnMount \
preventPodSchedulingIfMissing
storage.v1.CSIDriverSpec requiresRepublish seLinuxMount serviceAccountTokenInSecrets storageCapacity
storage.v1.StorageClass allowVolumeExpansion reclaimPolicy volumeBindingMode
storage.v1.StorageHealthCondition accessMode volumeMode
storage.v1.TokenRequest expirationSeconds
storage.v1.VolumeAttachmentSource persistentVolumeName
storage.v1.VolumeError errorCode
storage.v1.VolumeNodeResources count
apiextensions.v1.CustomResourceDefinitionVersion deprecationWarning
apiextensions.v1.CustomResourceSubresourceScale labelSelectorPath
apiextensions.v1.JSONSchemaProps $ref maxItems maxLength maxProperties maximum minItems minLength minProperties \
minimum multipleOf
apiextensions.v1.JSONSchemaProps x-kubernetes-list-type x-kubernetes-map-type x-kubernetes-preserve-unknown-fields
apiextensions.v1.ServiceReference path port
apiextensions.v1.ValidationRule optionalOldSelf reason
apiextensions.v1.WebhookClientConfig url
meta.v1.DeleteOptions gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents \
propagationPolicy
meta.v1.ListMeta remainingItemCount
meta.v1.ObjectMeta deletionGracePeriodSeconds
meta.v1.OwnerReference blockOwnerDeletion controller
meta.v1.Preconditions resourceVersion uid
apiregistration.v1.ServiceReference port
"""
"""Scalars that are pointers."""

VALUES = """
apps.v1.DaemonSetCondition lastTransitionTime
apps.v1.DeploymentCondition lastTransitionTime lastUpdateTime
apps.v1.ReplicaSetCondition lastTransitionTime
apps.v1.StatefulSetCondition lastTransitionTime
apps.v1.ControllerRevision data
authentication.v1.TokenRequestStatus expirationTimestamp
autoscaling.v2.HorizontalPodAutoscalerCondition lastTransitionTime
batch.v1.JobCondition lastProbeTime lastTransitionTime
certificates.v1.CertificateSigningRequestCondition lastTransitionTime lastUpdateTime
core.v1.ContainerStateRunning startedAt
core.v1.ContainerStateTerminated finishedAt startedAt
core.v1.Event eventTime firstTimestamp lastTimestamp
core.v1.EventSeries lastObservedTime
core.v1.HTTPGetAction port
core.v1.NamespaceCondition lastTransitionTime
core.v1.NodeCondition lastHeartbeatTime lastTransitionTime
core.v1.PersistentVolumeClaimCondition lastProbeTime lastTransitionTime
core.v1.PodCondition lastProbeTime lastTransitionTime
core.v1.PodVolumeHealth lastTransitionTime
core.v1.ReplicationControllerCondition lastTransitionTime
core.v1.ResourceFieldSelector divisor
core.v1.ServicePort targetPort
core.v1.TCPSocketAction port
core.v1.VolumeHealthStatus lastTransitionTime
events.v1.Event deprecatedFirstTimestamp deprecatedLastTimestamp eventTime
events.v1.EventSeries lastObservedTime
flowcontrol.v1.FlowSchemaCondition lastTransitionTime
flowcontrol.v1.PriorityLevelConfigurationCondition lastTransitionTime
resource.v1.Counter value
resource.v1.DeviceCapacity value
resource.v1.OpaqueDeviceConfiguration parameters
storage.v1.StorageHealthCondition lastTransitionTime
storage.v1.VolumeError time
apiextensions.v1.CustomResourceDefinitionCondition lastTransitionTime
meta.v1.Condition lastTransitionTime
meta.v1.WatchEvent object
apiregistration.v1.APIServiceCondition lastTransitionTime
"""
"""Times, quantities and similar types that are values, not pointers: written even if they are zero (as null, "0" or
0).
"""

NULLS = """
apps.v1.DaemonSetSpec selector
apps.v1.DeploymentSpec selector
apps.v1.ReplicaSetSpec selector
apps.v1.StatefulSetSpec selector
authentication.v1.TokenRequestSpec audiences boundObjectRef
autoscaling.v2.HorizontalPodAutoscalerStatus currentMetrics
certificates.v1.CertificateSigningRequestSpec request
certificates.v1.PodCertificateRequestSpec stubPKCS10Request
core.v1.AzureFilePersistentVolumeSource secretNamespace
core.v1.ContainerImage names
core.v1.EvictionResponder priority
core.v1.NodeAllocatableMappedResources quantity
core.v1.ProjectedVolumeSource sources
core.v1.ScaleIOPersistentVolumeSource secretRef
core.v1.ScaleIOVolumeSource secretRef
core.v1.TypedLocalObjectReference apiGroup
core.v1.TypedObjectReference apiGroup
discovery.v1.EndpointSlice endpoints ports
flowcontrol.v1.ResourcePolicyRule namespaces
rbac.v1.ClusterRole rules
rbac.v1.Role rules
resource.v1.AllocatedDeviceStatus conditions
resource.v1.CapacityRequestPolicy default
resource.v1.DeviceClaim requests
storage.v1.CSINodeDriver topologyKeys
apiextensions.v1.CustomResourceDefinitionStatus conditions storedVersions
"""
"""Pointers, lists and maps without `omitempty` that are not required: null when they are absent."""

NOT_NULLS = """
admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec validationActions
resource.v1.CounterSet counters
resource.v1.DeviceCounterConsumption counters
"""
"""Required lists and maps that have `omitempty` anyway."""

OMIT_EMPTY = """
autoscaling.v1.ScaleSpec replicas
core.v1.ConfigMapEnvSource name
core.v1.ConfigMapKeySelector name
core.v1.ConfigMapProjection name
core.v1.LocalObjectReference name
core.v1.ReplicationControllerSpec minReadySeconds
core.v1.SecretEnvSource name
core.v1.SecretKeySelector name
core.v1.SecretProjection name
core.v1.ConfigMapVolumeSource name
"""
"""Scalars with `omitempty` whose schema has a zero default anyway (of the field, not of the encoder)."""

OMIT_ZERO = """
"""
"""Structs with `omitzero`: omitted if no field is set."""


def table(text: str) -> dict[str, set[str]]:
    """Return the fields by definition."""
    found: dict[str, set[str]] = {}
    for line in text.split("\n"):
        name, *fields = line.split() or [""]
        if name:
            found.setdefault(name, set()).update(fields)
    return found
