package main

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const image = "registry.example.com/team/application:v1.2.3"

func pointer[T any](value T) *T { return &value }

func namespaceObject(name string) []byte {
	return encode("v1", "Namespace", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    apiresource.MustParse(cpu),
		corev1.ResourceMemory: apiresource.MustParse(memory),
	}
}

// nodeObject is a node as its kubelet registers it, with the images that a node keeps.
func nodeObject(name string, number int) []byte {
	capacity := quantities("32", "128Gi")
	capacity[corev1.ResourcePods] = apiresource.MustParse("110")
	node := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", number%3),
		}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress(number)}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: name, SystemUUID: name, BootID: name, KernelVersion: "6.1.0", OSImage: "Linux",
				ContainerRuntimeVersion: "containerd://2.1.0", KubeletVersion: "v1.37.1", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	now := metav1.Now()
	for _, kind := range []corev1.NodeConditionType{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		status, reason := corev1.ConditionFalse, "KubeletHasSufficient"+string(kind)
		if kind == corev1.NodeReady {
			status, reason = corev1.ConditionTrue, "KubeletReady"
		}
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: status, LastHeartbeatTime: now, LastTransitionTime: now, Reason: reason, Message: "kubelet is posting ready status",
		})
	}
	for i := range 20 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names:     []string{fmt.Sprintf("registry.example.com/team/image-%d:v1", i), fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064d", i, i)},
			SizeBytes: 50 << 20,
		})
	}
	return encode("v1", "Node", &node)
}

func nodeAddress(number int) string {
	return fmt.Sprintf("10.%d.%d.%d", 128+number>>16, number>>8&255, number&255)
}

// nodeHeartbeat is the patch of a node's conditions that its kubelet sends.
func nodeHeartbeat() []byte {
	now := time.Now().UTC().Format(time.RFC3339)
	return fmt.Appendf(nil, `{"status":{"$setElementOrder/conditions":[{"type":"MemoryPressure"},{"type":"DiskPressure"},`+
		`{"type":"PIDPressure"},{"type":"Ready"}],"conditions":[{"lastHeartbeatTime":%q,"type":"MemoryPressure"},`+
		`{"lastHeartbeatTime":%q,"type":"DiskPressure"},{"lastHeartbeatTime":%q,"type":"PIDPressure"},`+
		`{"lastHeartbeatTime":%q,"type":"Ready"}]}}`, now, now, now, now)
}

func leaseObject(namespace, name, version string, seconds int32) []byte {
	return encode("coordination.k8s.io/v1", "Lease", &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()}},
	})
}

func serviceAccountObject(namespace string) []byte {
	return encode("v1", "ServiceAccount", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
}

func rootCertificatesObject(namespace string) []byte {
	return encode("v1", "ConfigMap", &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: rootCertificates}, Data: map[string]string{"ca.crt": text(1100)},
	})
}

// text returns a value of this many bytes.
func text(length int) string {
	value := make([]byte, length)
	for i := range value {
		value[i] = 'a' + byte(i*7%26)
	}
	return string(value)
}

func (a *app) labels() map[string]string {
	return map[string]string{"app": a.name, "tier": fmt.Sprintf("tier-%d", a.number%10)}
}

func (a *app) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.namespace, Name: a.name, Labels: a.labels()}
}

func (a *app) configMap() []byte {
	return encode("v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: a.meta(), Data: map[string]string{"settings.yaml": text(500)}})
}

func (a *app) secret() []byte {
	return encode("v1", "Secret", &corev1.Secret{ObjectMeta: a.meta(), Data: map[string][]byte{"password": []byte(text(200))}})
}

func (a *app) service() []byte {
	return encode("v1", "Service", &corev1.Service{ObjectMeta: a.meta(), Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": a.name},
		Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP}},
	}})
}

func (a *app) template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: a.labels()}, Spec: a.podSpec()}
}

func (a *app) deployment() []byte {
	return encode("apps/v1", "Deployment", &appsv1.Deployment{ObjectMeta: a.meta(), Spec: appsv1.DeploymentSpec{
		Replicas: pointer(int32(podsPerService)), Selector: &metav1.LabelSelector{MatchLabels: a.labels()}, Template: a.template(),
	}})
}

func (a *app) replicaSet() []byte {
	return encode("apps/v1", "ReplicaSet", &appsv1.ReplicaSet{ObjectMeta: a.meta(), Spec: appsv1.ReplicaSetSpec{
		Replicas: pointer(int32(podsPerService)), Selector: &metav1.LabelSelector{MatchLabels: a.labels()}, Template: a.template(),
	}})
}

// replicaSetStatus is the replica set with new numbers, as its controller writes it.
func (a *app) replicaSetStatus(ready int) []byte {
	object := appsv1.ReplicaSet{ObjectMeta: a.meta(), Spec: appsv1.ReplicaSetSpec{
		Replicas: pointer(int32(podsPerService)), Selector: &metav1.LabelSelector{MatchLabels: a.labels()}, Template: a.template(),
	}}
	object.ResourceVersion = a.replicaSetVersion
	object.Status = appsv1.ReplicaSetStatus{
		Replicas: int32(ready), FullyLabeledReplicas: int32(ready), ReadyReplicas: int32(ready), AvailableReplicas: int32(ready), ObservedGeneration: 1,
	}
	return encode("apps/v1", "ReplicaSet", &object)
}

// endpointSlice lists the ready pods of the service.
func (a *app) endpointSlice() []byte {
	slice := discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name, ResourceVersion: a.sliceVersion, Labels: map[string]string{
			"kubernetes.io/service-name": a.name, "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: pointer("http"), Port: pointer(int32(8080)), Protocol: pointer(corev1.ProtocolTCP)}},
	}
	for _, one := range a.ready {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{one.address}, NodeName: &one.node,
			Conditions: discoveryv1.EndpointConditions{Ready: pointer(true), Serving: pointer(true), Terminating: pointer(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: one.namespace, Name: one.name, UID: types.UID(one.uid)},
		})
	}
	return encode("discovery.k8s.io/v1", "EndpointSlice", &slice)
}

func (a *app) podSpec() corev1.PodSpec {
	probe := &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
		PeriodSeconds: 10,
	}
	return corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "main", Image: image, Args: []string{"--config=/etc/settings/settings.yaml", "--verbose"},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Env: []corev1.EnvVar{
				{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
				{Name: "REGION", Value: "north"}, {Name: "LOG_LEVEL", Value: "info"},
			},
			Resources:      corev1.ResourceRequirements{Requests: quantities("10m", "20Mi"), Limits: quantities("1", "200Mi")},
			VolumeMounts:   []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/settings"}, {Name: "password", MountPath: "/etc/password"}},
			ReadinessProbe: probe, LivenessProbe: probe,
		}},
		Volumes: []corev1.Volume{
			{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: a.name}}}},
			{Name: "password", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: a.name}}},
		},
	}
}

// podObject is a pod as the controller of its replica set creates it.
func podObject(p *pod) []byte {
	return encode("v1", "Pod", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, Labels: p.app.labels(), OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: p.app.name, UID: types.UID(p.app.replicaSetUID),
			Controller: pointer(true), BlockOwnerDeletion: pointer(true),
		}}},
		Spec: p.app.podSpec(),
	})
}

func bindingObject(p *pod) []byte {
	return encode("v1", "Binding", &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, UID: types.UID(p.uid)},
		Target:     corev1.ObjectReference{Kind: "Node", Name: p.node},
	})
}

func tokenRequest(p *pod) []byte {
	return encode("authentication.k8s.io/v1", "TokenRequest", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: pointer(int64(3607)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.name, UID: types.UID(p.uid)},
	}})
}

// podStatuses are the patches that the kubelet of a pod sends: containers creating, running but not ready, ready.
func podStatus(p *pod, stage int) []byte {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, status string) string {
		return fmt.Sprintf(`{"type":%q,"status":%q,"observedGeneration":1,"lastProbeTime":null,"lastTransitionTime":%q}`, kind, status, now)
	}
	state, phase, ready, started := `{"waiting":{"reason":"ContainerCreating"}}`, "Pending", "False", "false"
	if stage > 0 {
		state, phase, started = fmt.Sprintf(`{"running":{"startedAt":%q}}`, now), "Running", "true"
	}
	if stage == 2 {
		ready = "True"
	}
	if stage == terminated {
		state, phase, started = fmt.Sprintf(`{"terminated":{"exitCode":0,"reason":"Completed","startedAt":%q,"finishedAt":%q}}`, now, now), "Succeeded", "false"
	}
	addresses := ""
	if stage > 0 {
		addresses = fmt.Sprintf(`,"podIP":%q,"podIPs":[{"ip":%q}]`, p.address, p.address)
	}
	return fmt.Appendf(nil, `{"metadata":{"uid":%q},"status":{"$setElementOrder/conditions":[{"type":"PodReadyToStartContainers"},`+
		`{"type":"Initialized"},{"type":"Ready"},{"type":"ContainersReady"},{"type":"PodScheduled"}],"conditions":[%s,%s,%s,%s],`+
		`"containerStatuses":[{"image":%q,"imageID":"%s","lastState":{},"name":"main","ready":%t,"restartCount":0,"started":%s,"state":%s}],`+
		`"hostIP":%q,"hostIPs":[{"ip":%q}],"phase":%q,"startTime":%q,"observedGeneration":1%s}}`,
		p.uid, condition("PodReadyToStartContainers", map[bool]string{true: "True", false: "False"}[stage > 0 && stage < terminated]),
		condition("Initialized", "True"), condition("Ready", ready), condition("ContainersReady", ready),
		image, map[bool]string{true: image + "@sha256:" + text(64)}[stage > 0], ready == "True", started, state,
		p.hostAddress, p.hostAddress, phase, now, addresses)
}

// scheduledEvent is the event of the scheduler.
func scheduledEvent(p *pod) []byte {
	return encode("events.k8s.io/v1", "Event", &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: fmt.Sprintf("%s.%x", p.name, time.Now().UnixNano())},
		EventTime:  metav1.MicroTime{Time: time.Now()}, ReportingController: "default-scheduler", ReportingInstance: "default-scheduler-load",
		Action: "Binding", Reason: "Scheduled", Type: corev1.EventTypeNormal, Regarding: p.reference(),
		Note: fmt.Sprintf("Successfully assigned %s/%s to %s", p.namespace, p.name, p.node),
	})
}

// startedEvent is the event of the kubelet.
func startedEvent(p *pod) []byte {
	now := metav1.Now()
	return encode("v1", "Event", &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: p.namespace, Name: fmt.Sprintf("%s.%x", p.name, time.Now().UnixNano())},
		InvolvedObject: p.reference(), Reason: "Started", Message: "Container started", Type: corev1.EventTypeNormal,
		Source: corev1.EventSource{Component: "kubelet", Host: p.node}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		ReportingController: "kubelet", ReportingInstance: p.node,
	})
}

func (p *pod) reference() corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.namespace, Name: p.name, UID: types.UID(p.uid)}
}

// deleteOptions ask for a deletion with this grace.
func deleteOptions(seconds int64, uid string) []byte {
	options := metav1.DeleteOptions{GracePeriodSeconds: &seconds}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: pointer(types.UID(uid))}
	}
	return encode("v1", "DeleteOptions", &options)
}

// definition is the CustomResourceDefinition of the widgets.
const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"widgets.scale.tetrapod.dev"},"spec":{"group":"scale.tetrapod.dev","scope":"Namespaced",
"names":{"plural":"widgets","singular":"widget","kind":"Widget"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object",
"properties":{"spec":{"type":"object","required":["size"],"properties":{"size":{"type":"integer","minimum":0},
"color":{"type":"string","enum":["red","green","blue"],"default":"red"},
"parts":{"type":"array","maxItems":100,"items":{"type":"object","properties":{"name":{"type":"string"},"weight":{"type":"integer"}}}}},
"x-kubernetes-validations":[{"rule":"self.size <= 1000","message":"size is at most 1000"}]},
"status":{"type":"object","properties":{"phase":{"type":"string"},"observed":{"type":"integer"}}}}}}}]}}`

func widgetObject(namespace, name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"scale.tetrapod.dev/v1","kind":"Widget","metadata":{"namespace":%q,"name":%q,"labels":{"app":"widgets"}},`+
		`"spec":{"size":3,"color":"green","parts":[{"name":"a","weight":1},{"name":"b","weight":2}]}}`, namespace, name)
}

func widgetStatus(observed int) []byte {
	return fmt.Appendf(nil, `{"status":{"phase":"Working","observed":%d}}`, observed)
}
