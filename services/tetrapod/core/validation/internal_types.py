"""The internal Go types of core's kinds that upstream prints whole in error messages.

The table has the names, the order and the zero values of their fields. Order and names follow pkg/apis/core/types.go
and its siblings. `StructTypes` describes the notation.
"""

from __future__ import annotations

from typing import Final

from tetrapod.machinery.go_structs import StructTypes

_TYPES: Final = {
    "PodSpec": (
        "Volumes[]Volume InitContainers[]Container Containers[]Container EphemeralContainers[]EphemeralContainer"
        " RestartPolicy TerminationGracePeriodSeconds:ptr ActiveDeadlineSeconds:ptr DNSPolicy NodeSelector:map"
        " ServiceAccountName DeprecatedServiceAccount AutomountServiceAccountToken:ptr NodeName HostNetwork:bool"
        " HostPID:bool HostIPC:bool ShareProcessNamespace:ptr SecurityContext*PodSecurityContext"
        " ImagePullSecrets[]Named Hostname Subdomain Affinity*Affinity SchedulerName Tolerations[]Toleration"
        " HostAliases[]HostAlias PriorityClassName Priority:ptr DNSConfig*PodDNSConfig ReadinessGates[]ReadinessGate"
        " RuntimeClassName:ptr EnableServiceLinks:ptr PreemptionPolicy:ptr Overhead:resources"
        " TopologySpreadConstraints[]TopologySpread SetHostnameAsFQDN:ptr OS*Named HostUsers:ptr"
        " SchedulingGates[]Named ResourceClaims[]PodResourceClaim Resources*Resources HostnameOverride:ptr"
        " SchedulingGroup*PodSchedulingGroup EvictionResponders[]EvictionResponder"
    ),
    "PodSchedulingGroup": "PodGroupName:ptr",
    "EvictionResponder": "Name Priority:ptr",
    "DeviceAttribute": (
        "IntValue:ptr BoolValue:ptr StringValue:ptr VersionValue:ptr"
        " IntValues:list BoolValues:list StringValues:list VersionValues:list"
    ),
    "FlowSchemaSpec": (
        "PriorityLevelConfiguration=Named MatchingPrecedence:int DistinguisherMethod*FlowDistinguisher Rules[]FlowRule"
    ),
    "FlowDistinguisher": "Type",
    "FlowRule": "Subjects[]FlowSubject ResourceRules[]FlowResourceRule NonResourceRules[]FlowURLRule",
    "FlowSubject": "Kind User*Named Group*Named ServiceAccount*FlowServiceAccount",
    "FlowServiceAccount": "Namespace Name",
    "FlowResourceRule": "Verbs:list APIGroups:list Resources:list ClusterScope:bool Namespaces:list",
    "FlowURLRule": "Verbs:list NonResourceURLs:list",
    "PriorityLevelSpec": "Type Limited*LimitedLevel Exempt*ExemptLevel",
    "LimitedLevel": (
        "NominalConcurrencyShares:int LimitResponse=LimitResponse LendablePercent:ptr BorrowingLimitPercent:ptr"
    ),
    "ExemptLevel": "NominalConcurrencyShares:ptr LendablePercent:ptr",
    "LimitResponse": "Type Queuing*Queuing",
    "Queuing": "Queues:int HandSize:int QueueLengthLimit:int",
    "PodCertificateRequestSpec": (
        "SignerName PodName PodUID ServiceAccountName ServiceAccountUID NodeName NodeUID MaxExpirationSeconds:ptr"
        " PKIXPublicKey:ptr ProofOfPossession:ptr StubPKCS10Request:ptr UnverifiedUserAnnotations:map"
    ),
    "CompositePodGroupTemplate": (
        "Name SchedulingPolicy=GroupPolicy SchedulingConstraints*GroupConstraints DisruptionMode*DisruptionMode"
        " PriorityClassName Priority:ptr PreemptionPolicy:ptr PodGroupTemplates[]PodGroupTemplate"
        " CompositePodGroupTemplates[]CompositePodGroupTemplate"
    ),
    "PodGroupTemplate": (
        "Name SchedulingPolicy=PodGroupPolicy SchedulingConstraints*GroupConstraints ResourceClaims[]PodResourceClaim"
        " DisruptionMode*DisruptionMode PriorityClassName Priority:ptr PreemptionPolicy:ptr"
    ),
    "GroupPolicy": "Basic:wire Gang*GroupGang",
    "GroupGang": "MinGroupCount:int",
    "PodGroupPolicy": "Basic:wire Gang*PodGroupGang",
    "PodGroupGang": "MinCount:int",
    "GroupConstraints": "Topology[]TopologyConstraint",
    "TopologyConstraint": "Key",
    "DisruptionMode": "Single:wire All:wire",
    "TargetResponder": "Name Priority:ptr State",
    "ResponderStatus": (
        "Name StartTime:ptr HeartbeatTime:ptr ExpectedCompletionTime:ptr CompletionTime:ptr Message:ptr"
    ),
    "ResourcePoolStatusRequestStatus": "PoolCount:ptr Pools[]PoolStatus Conditions:wire",
    "PoolStatus": (
        "Driver PoolName Generation:int ResourceSliceCount:ptr TotalDevices:ptr AllocatedDevices:ptr"
        " AvailableDevices:ptr UnavailableDevices:ptr NodeName:ptr ValidationError:ptr"
        " PartitionSummary[]PartitionTypeStatus ShareableSummary*ShareableSummaryStatus"
    ),
    "PartitionTypeStatus": "Attribute Type Total:ptr Allocatable:ptr",
    "ShareableSummaryStatus": (
        "FullyAvailableDevices:ptr PartiallyAvailableDevices:ptr Capacity[]ShareableCapacityStatus"
    ),
    "ShareableCapacityStatus": "Name Total:ptr Consumed:ptr Available:ptr",
    "AllocationResult": "Devices=DeviceAllocationResult NodeSelector*NodeSelector AllocationTimestamp:ptr",
    "DeviceAllocationResult": "Results[]DeviceRequestAllocationResult Config[]DeviceAllocationConfiguration",
    "DeviceRequestAllocationResult": (
        "Request Driver Pool Device AdminAccess:ptr Tolerations[]Toleration BindingConditions:list"
        " BindingFailureConditions:list ShareID:ptr ConsumedCapacity:resources SkipNodeOperations:list"
    ),
    "DeviceAllocationConfiguration": "Source Requests:list Opaque*OpaqueConfiguration",
    "ResourceClaimTemplateSpec": "Metadata:meta Spec=ResourceClaimSpec",
    "ResourceClaimSpec": "Devices=DeviceClaim",
    "DeviceClaim": "Requests[]DeviceRequest Constraints[]DeviceConstraint Config[]DeviceClaimConfiguration",
    "DeviceRequest": "Name Exactly*ExactDeviceRequest FirstAvailable[]DeviceSubRequest",
    "ExactDeviceRequest": (
        "DeviceClassName Selectors[]DeviceSelector AllocationMode Count:int AdminAccess:ptr Tolerations[]Toleration"
        " Capacity*CapacityRequirements DerivedAttributes:wire"
    ),
    "DeviceSubRequest": (
        "Name DeviceClassName Selectors[]DeviceSelector AllocationMode Count:int Tolerations[]Toleration"
        " Capacity*CapacityRequirements DerivedAttributes:wire"
    ),
    "CapacityRequirements": "Requests:resources",
    "DeviceSelector": "CEL*CELSelector",
    "CELSelector": "Expression",
    "DeviceConstraint": "Requests:list MatchAttribute:ptr DistinctAttribute:ptr",
    "DeviceClaimConfiguration": "Requests:list Opaque*OpaqueConfiguration",
    "OpaqueConfiguration": "Driver Parameters:wire",
    "Named": "Name",
    "Container": (
        "Name Image Command:list Args:list WorkingDir Ports[]ContainerPort EnvFrom[]EnvFrom Env[]EnvVar"
        " Resources=Resources ResizePolicy[]ResizePolicy RestartPolicy:ptr RestartPolicyRules[]RestartRule"
        " VolumeMounts[]VolumeMount VolumeDevices[]VolumeDevice LivenessProbe*Probe ReadinessProbe*Probe"
        " StartupProbe*Probe Lifecycle*Lifecycle TerminationMessagePath TerminationMessagePolicy ImagePullPolicy"
        " SecurityContext*SecurityContext Stdin:bool StdinOnce:bool TTY:bool"
    ),
    "EphemeralContainer": "Container+Container TargetContainerName",
    "ContainerPort": "Name HostPort:int ContainerPort:int Protocol HostIP",
    "EnvFrom": "Prefix ConfigMapRef*OptionalName SecretRef*OptionalName",
    "OptionalName": "Name Optional:ptr",
    "EnvVar": "Name Value ValueFrom*EnvSource",
    "EnvSource": (
        "FieldRef*FieldRef ResourceFieldRef*ResourceRef ConfigMapKeyRef*KeyRef SecretKeyRef*KeyRef"
        " FileKeyRef*FileKeyRef"
    ),
    "FieldRef": "APIVersion FieldPath",
    "ResourceRef": "ContainerName Resource Divisor:quantity",
    "KeyRef": "Name Key Optional:ptr",
    "FileKeyRef": "VolumeName Path Key Optional:ptr",
    "Resources": "Limits:resources Requests:resources Claims[]Claim",
    "Claim": "Name Request",
    "ResizePolicy": "ResourceName RestartPolicy",
    "RestartRule": "Action ExitCodes*ExitCodes",
    "ExitCodes": "Operator Values:list",
    "VolumeMount": (
        "Name ReadOnly:bool RecursiveReadOnly:ptr MountPath SubPath MountPropagation:ptr SubPathExpr"
        " BindMountOptions:wire"
    ),
    "VolumeDevice": "Name DevicePath",
    "Probe": (
        "Handler+ProbeHandler InitialDelaySeconds:int TimeoutSeconds:int PeriodSeconds:int SuccessThreshold:int"
        " FailureThreshold:int TerminationGracePeriodSeconds:ptr"
    ),
    "ProbeHandler": "Exec*Exec HTTPGet*HTTPGet TCPSocket*TCPSocket GRPC*GRPC",
    "Lifecycle": "PostStart*LifecycleHandler PreStop*LifecycleHandler StopSignal:ptr",
    "LifecycleHandler": "Exec*Exec HTTPGet*HTTPGet TCPSocket*TCPSocket Sleep*Sleep",
    "Exec": "Command:list",
    "HTTPGet": "Path Port:port Host Scheme HTTPHeaders[]Header Protocol:ptr",
    "Header": "Name Value",
    "TCPSocket": "Port:port Host",
    "GRPC": "Port:int Service:ptr Mode:ptr",
    "Sleep": "Seconds:int",
    "SecurityContext": (
        "Capabilities*Capabilities Privileged:ptr SELinuxOptions*SELinux WindowsOptions*Windows RunAsUser:ptr"
        " RunAsGroup:ptr RunAsNonRoot:ptr ReadOnlyRootFilesystem:ptr AllowPrivilegeEscalation:ptr ProcMount:ptr"
        " SeccompProfile*Profile AppArmorProfile*Profile"
    ),
    "PodSecurityContext": (
        "SELinuxOptions*SELinux WindowsOptions*Windows RunAsUser:ptr RunAsGroup:ptr RunAsNonRoot:ptr"
        " SupplementalGroups:list SupplementalGroupsPolicy:ptr FSGroup:ptr Sysctls[]Header FSGroupChangePolicy:ptr"
        " SeccompProfile*Profile AppArmorProfile*Profile SELinuxChangePolicy:ptr"
    ),
    "Capabilities": "Add:list Drop:list",
    "SELinux": "User Role Type Level",
    "Windows": "GMSACredentialSpecName:ptr GMSACredentialSpec:ptr RunAsUserName:ptr HostProcess:ptr",
    "Profile": "Type LocalhostProfile:ptr",
    "Affinity": "NodeAffinity*NodeAffinity PodAffinity*PodAffinity PodAntiAffinity*PodAffinity",
    "NodeAffinity": (
        "RequiredDuringSchedulingIgnoredDuringExecution*NodeSelector"
        " PreferredDuringSchedulingIgnoredDuringExecution[]PreferredNode"
    ),
    "NodeSelector": "NodeSelectorTerms[]NodeSelectorTerm",
    "NodeSelectorTerm": "MatchExpressions[]NodeRequirement MatchFields[]NodeRequirement",
    "NodeRequirement": "Key Operator Values:list",
    "PreferredNode": "Weight:int Preference=NodeSelectorTerm",
    "PodAffinity": (
        "RequiredDuringSchedulingIgnoredDuringExecution[]PodAffinityTerm"
        " PreferredDuringSchedulingIgnoredDuringExecution[]WeightedPod"
    ),
    "PodAffinityTerm": (
        "LabelSelector:selector Namespaces:list TopologyKey NamespaceSelector:selector MatchLabelKeys:list"
        " MismatchLabelKeys:list"
    ),
    "WeightedPod": "Weight:int PodAffinityTerm=PodAffinityTerm",
    "Toleration": "Key Operator Value Effect TolerationSeconds:ptr",
    "Taint": "Key Value Effect TimeAdded:ptr",
    "HostAlias": "IP Hostnames:list",
    "PodDNSConfig": "Nameservers:list Searches:list Options[]DNSOption",
    "DNSOption": "Name Value:ptr",
    "ReadinessGate": "ConditionType",
    "TopologySpread": (
        "MaxSkew:int TopologyKey WhenUnsatisfiable LabelSelector:selector MinDomains:ptr NodeAffinityPolicy:ptr"
        " NodeTaintsPolicy:ptr MatchLabelKeys:list"
    ),
    "PodResourceClaim": "Name ResourceClaimName:ptr ResourceClaimTemplateName:ptr",
    "VolumeNodeAffinity": "Required*NodeSelector",
    "ObjectReference": "Kind Namespace Name UID APIVersion ResourceVersion FieldPath",
    "NodeAddress": "Type Address",
    "IPHolder": "IP",
    "PersistentVolumeClaimSpec": (
        "AccessModes:list Selector:selector Resources=VolumeResources VolumeName StorageClassName:ptr VolumeMode:ptr"
        " DataSource*TypedRef DataSourceRef*NamespacedRef VolumeAttributesClassName:ptr"
    ),
    "PersistentVolumeClaim": "Metadata:meta Spec=PersistentVolumeClaimSpec Status=PersistentVolumeClaimStatus",
    "PersistentVolumeClaimStatus": (
        "Phase AccessModes:list Capacity:resources Conditions[]ClaimCondition AllocatedResources:resources"
        " AllocatedResourceStatuses:map CurrentVolumeAttributesClassName:ptr ModifyVolumeStatus*ModifyVolumeStatus"
        " HealthStatus*VolumeHealthStatus"
    ),
    "ClaimCondition": "Type Status LastProbeTime:ptr LastTransitionTime:ptr Reason Message",
    "ModifyVolumeStatus": "TargetVolumeAttributesClassName Status",
    "VolumeHealthStatus": "HealthConditions[]VolumeHealthCondition LastTransitionTime:ptr",
    "VolumeHealthCondition": "Status Reason Message",
    "VolumeResources": "Limits:resources Requests:resources",
    "TypedRef": "APIGroup:ptr Kind Name",
    "NamespacedRef": "APIGroup:ptr Kind Name Namespace:ptr",
    "Volume": (
        "Name HostPath*HostPath EmptyDir*EmptyDir GCEPersistentDisk*GCEDisk AWSElasticBlockStore*AWSDisk"
        " GitRepo*GitRepo Secret*SecretBag NFS*NFS ISCSI*ISCSI Glusterfs*Glusterfs PersistentVolumeClaim*ClaimRef"
        " RBD*RBD FlexVolume*Flex Cinder*Cinder CephFS*CephFS Flocker*Flocker DownwardAPI*Downward FC*FC"
        " AzureFile*AzureFile ConfigMap*ConfigMapBag VsphereVolume*Vsphere Quobyte*Quobyte AzureDisk*AzureDisk"
        " PhotonPersistentDisk*Photon Projected*Projected PortworxVolume*Portworx ScaleIO*ScaleIO StorageOS*StorageOS"
        " CSI*CSI Ephemeral*Ephemeral Image*Image"
    ),
    "PersistentVolumeSource": (
        "GCEPersistentDisk*GCEDisk AWSElasticBlockStore*AWSDisk HostPath*HostPath Glusterfs*GlusterfsPersistent"
        " NFS*NFS RBD*RBDPersistent ISCSI*ISCSIPersistent Cinder*CinderPersistent CephFS*CephFSPersistent FC*FC"
        " Flocker*Flocker FlexVolume*FlexPersistent AzureFile*AzureFilePersistent VsphereVolume*Vsphere"
        " Quobyte*Quobyte AzureDisk*AzureDisk PhotonPersistentDisk*Photon PortworxVolume*Portworx"
        " ScaleIO*ScaleIOPersistent Local*Local StorageOS*StorageOSPersistent CSI*CSIPersistent"
    ),
    "VolumeAttachmentSpec": "Attacher Source=VolumeAttachmentSource NodeName",
    "VolumeAttachmentSource": "PersistentVolumeName:ptr InlineVolumeSpec*PersistentVolumeSpec",
    "PersistentVolumeSpec": (
        "Capacity:resources PersistentVolumeSource+PersistentVolumeSource AccessModes:list ClaimRef*ObjectReference"
        " PersistentVolumeReclaimPolicy StorageClassName MountOptions:list VolumeMode:ptr"
        " NodeAffinity*VolumeNodeAffinity VolumeAttributesClassName:ptr"
    ),
    "ParentReference": "Group Resource Namespace Name",
    "HostPath": "Path Type:ptr",
    "EmptyDir": "Medium SizeLimit:ptr Mode:ptr",
    "GCEDisk": "PDName FSType Partition:int ReadOnly:bool",
    "AWSDisk": "VolumeID FSType Partition:int ReadOnly:bool",
    "GitRepo": "Repository Revision Directory",
    "SecretBag": "SecretName Items[]KeyToPath DefaultMode:ptr Optional:ptr DefaultUser:ptr",
    "ConfigMapBag": "Name Items[]KeyToPath DefaultMode:ptr Optional:ptr DefaultUser:ptr",
    "KeyToPath": "Key Path Mode:ptr User:ptr",
    "NFS": "Server Path ReadOnly:bool",
    "ISCSI": (
        "TargetPortal IQN Lun:int ISCSIInterface FSType ReadOnly:bool Portals:list DiscoveryCHAPAuth:bool"
        " SessionCHAPAuth:bool SecretRef*Named InitiatorName:ptr"
    ),
    "ISCSIPersistent": (
        "TargetPortal IQN Lun:int ISCSIInterface FSType ReadOnly:bool Portals:list DiscoveryCHAPAuth:bool"
        " SessionCHAPAuth:bool SecretRef*SecretReference InitiatorName:ptr"
    ),
    "SecretReference": "Name Namespace",
    "Glusterfs": "EndpointsName Path ReadOnly:bool",
    "GlusterfsPersistent": "EndpointsName Path ReadOnly:bool EndpointsNamespace:ptr",
    "ClaimRef": "ClaimName ReadOnly:bool",
    "RBD": "CephMonitors:list RBDImage FSType RBDPool RadosUser Keyring SecretRef*Named ReadOnly:bool",
    "RBDPersistent": (
        "CephMonitors:list RBDImage FSType RBDPool RadosUser Keyring SecretRef*SecretReference ReadOnly:bool"
    ),
    "Flex": "Driver FSType SecretRef*Named ReadOnly:bool Options:map",
    "FlexPersistent": "Driver FSType SecretRef*SecretReference ReadOnly:bool Options:map",
    "Cinder": "VolumeID FSType ReadOnly:bool SecretRef*Named",
    "CinderPersistent": "VolumeID FSType ReadOnly:bool SecretRef*SecretReference",
    "CephFS": "Monitors:list Path User SecretFile SecretRef*Named ReadOnly:bool",
    "CephFSPersistent": "Monitors:list Path User SecretFile SecretRef*SecretReference ReadOnly:bool",
    "Flocker": "DatasetName DatasetUUID",
    "Downward": "Items[]DownwardFile DefaultMode:ptr DefaultUser:ptr",
    "DownwardFile": "Path FieldRef*FieldRef ResourceFieldRef*ResourceRef Mode:ptr User:ptr",
    "FC": "TargetWWNs:list Lun:ptr FSType ReadOnly:bool WWIDs:list",
    "AzureFile": "SecretName ShareName ReadOnly:bool",
    "AzureFilePersistent": "SecretName ShareName ReadOnly:bool SecretNamespace:ptr",
    "Vsphere": "VolumePath FSType StoragePolicyName StoragePolicyID",
    "Quobyte": "Registry Volume ReadOnly:bool User Group Tenant",
    "AzureDisk": "DiskName DataDiskURI CachingMode:ptr FSType:ptr ReadOnly:ptr Kind:ptr",
    "Photon": "PdID FSType",
    "Projected": "Sources[]ProjectedSource DefaultMode:ptr DefaultUser:ptr",
    "ProjectedSource": (
        "Secret*NamedBag DownwardAPI*DownwardItems ConfigMap*NamedBag ServiceAccountToken*TokenSource"
        " ClusterTrustBundle*TrustBundle PodCertificate*PodCertificate"
    ),
    "NamedBag": "Name Items[]KeyToPath Optional:ptr",
    "DownwardItems": "Items[]DownwardFile",
    "TokenSource": "Audience ExpirationSeconds:int Path User:ptr",
    "TrustBundle": "Name:ptr SignerName:ptr LabelSelector:selector Optional:ptr Path User:ptr",
    "PodCertificate": (
        "SignerName KeyType MaxExpirationSeconds:ptr CredentialBundlePath KeyPath CertificateChainPath"
        " UserAnnotations:map User:ptr"
    ),
    "Portworx": "VolumeID FSType ReadOnly:bool",
    "ScaleIO": (
        "Gateway System SecretRef*Named SSLEnabled:bool ProtectionDomain StoragePool StorageMode VolumeName FSType"
        " ReadOnly:bool"
    ),
    "ScaleIOPersistent": (
        "Gateway System SecretRef*SecretReference SSLEnabled:bool ProtectionDomain StoragePool StorageMode"
        " VolumeName FSType ReadOnly:bool"
    ),
    "Local": "Path FSType:ptr",
    "StorageOS": "VolumeName VolumeNamespace FSType ReadOnly:bool SecretRef*Named",
    "StorageOSPersistent": "VolumeName VolumeNamespace FSType ReadOnly:bool SecretRef*ObjectReference",
    "CSI": "Driver ReadOnly:ptr FSType:ptr VolumeAttributes:map NodePublishSecretRef*Named",
    "CSIPersistent": (
        "Driver VolumeHandle ReadOnly:bool FSType VolumeAttributes:map ControllerPublishSecretRef*SecretReference"
        " NodeStageSecretRef*SecretReference NodePublishSecretRef*SecretReference"
        " ControllerExpandSecretRef*SecretReference NodeExpandSecretRef*SecretReference"
    ),
    "Ephemeral": "VolumeClaimTemplate*ClaimTemplate",
    "ClaimTemplate": "Metadata:meta Spec=PersistentVolumeClaimSpec",
    "Image": "Reference PullPolicy",
}

_KEYS: Final = {
    "CephFS": "cephfs",
    "StorageOS": "storageos",
    "WWIDs": "wwids",
    "CephMonitors": "monitors",
    "RBDImage": "image",
    "RBDPool": "pool",
    "RadosUser": "user",
    "EndpointsName": "endpoints",
    "DataDiskURI": "diskURI",
    "DiscoveryCHAPAuth": "chapAuthDiscovery",
    "SessionCHAPAuth": "chapAuthSession",
    "ISCSIInterface": "iscsiInterface",
    "DeprecatedServiceAccount": "serviceAccount",
    "PdID": "pdID",
    "SetHostnameAsFQDN": "setHostnameAsFQDN",
    **{
        f"{kind}Value{plural}": f"{kind.lower()}{plural}"
        for kind in ("Int", "Bool", "String", "Version")
        for plural in ("", "s")
    },
}

INTERNAL_TYPES: Final = StructTypes(_TYPES, _KEYS)
