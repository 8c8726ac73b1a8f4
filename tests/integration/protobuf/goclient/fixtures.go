package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"time"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}
}

func to[T any](value T) *T { return &value }

func configMap() *core.ConfigMap {
	return &core.ConfigMap{
		ObjectMeta: named("c"),
		Data:       map[string]string{"a": "b", "empty": "", "long": string(make([]byte, 3000)), "z": "Zürich"},
		BinaryData: map[string][]byte{"bytes": {0, 1, 0xfe, 0xff}},
	}
}

func secret() *core.Secret {
	return &core.Secret{ObjectMeta: named("s"), Type: core.SecretTypeOpaque, Data: map[string][]byte{"k": {0xff, 0}, "empty": {}}}
}

func podSpec() core.PodSpec {
	return core.PodSpec{
		TerminationGracePeriodSeconds: to(int64(0)),
		NodeSelector:                  map[string]string{"disk": "ssd"},
		SecurityContext:               &core.PodSecurityContext{RunAsUser: to(int64(1000)), SupplementalGroups: []int64{1, 300, 70000}},
		Tolerations:                   []core.Toleration{{Key: "k", Operator: core.TolerationOpExists, Effect: core.TaintEffectNoExecute, TolerationSeconds: to(int64(30))}},
		Volumes: []core.Volume{
			{Name: "e", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{SizeLimit: to(resource.MustParse("1Gi"))}}},
			{Name: "c", VolumeSource: core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{LocalObjectReference: core.LocalObjectReference{Name: "c"}, Optional: to(true)}}},
		},
		Containers: []core.Container{{
			Name: "c", Image: "i", Command: []string{"a", ""},
			Ports: []core.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Env: []core.EnvVar{
				{Name: "A", Value: "1"},
				{Name: "B", ValueFrom: &core.EnvVarSource{SecretKeyRef: &core.SecretKeySelector{LocalObjectReference: core.LocalObjectReference{Name: "s"}, Key: "k"}}},
			},
			Resources: core.ResourceRequirements{
				Limits:   core.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("64Mi")},
				Requests: core.ResourceList{"cpu": resource.MustParse("1m")},
			},
			LivenessProbe: &core.Probe{
				ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}, InitialDelaySeconds: 5,
			},
			ReadinessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{TCPSocket: &core.TCPSocketAction{Port: intstr.FromInt32(8080)}}},
			VolumeMounts:   []core.VolumeMount{{Name: "e", MountPath: "/e"}},
		}},
	}
}

func template() core.PodTemplateSpec {
	spec := podSpec()
	spec.TerminationGracePeriodSeconds = nil
	return core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}, Spec: spec}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{
		MatchLabels:      map[string]string{"app": "x"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}}},
	}
}

func pod() *core.Pod { return &core.Pod{ObjectMeta: named("p"), Spec: podSpec()} }

func service() *core.Service {
	return &core.Service{ObjectMeta: named("svc"), Spec: core.ServiceSpec{
		Selector: map[string]string{"app": "x"},
		Ports:    []core.ServicePort{{Name: "a", Port: 80, TargetPort: intstr.FromString("http")}, {Name: "b", Port: 81, TargetPort: intstr.FromInt32(8081)}},
	}}
}

func event() *core.Event {
	return &core.Event{
		ObjectMeta: named("e"), InvolvedObject: core.ObjectReference{Kind: "Pod", Name: "p", Namespace: namespace},
		Reason: "Why", Message: "what", Type: "Normal", Count: 2, Source: core.EventSource{Component: "test"},
		FirstTimestamp: metav1.NewTime(time.Unix(1700000000, 0)), LastTimestamp: metav1.NewTime(time.Unix(1700000001, 0)),
	}
}

func persistentVolume() *core.PersistentVolume {
	return &core.PersistentVolume{ObjectMeta: named("pv"), Spec: core.PersistentVolumeSpec{
		Capacity:               core.ResourceList{"storage": resource.MustParse("1500M")},
		AccessModes:            []core.PersistentVolumeAccessMode{core.ReadWriteOnce},
		PersistentVolumeSource: core.PersistentVolumeSource{HostPath: &core.HostPathVolumeSource{Path: "/x"}},
	}}
}

func deployment() *apps.Deployment {
	return &apps.Deployment{ObjectMeta: named("d"), Spec: apps.DeploymentSpec{
		Replicas: to(int32(0)), Selector: selector(), Template: template(), Paused: true,
		Strategy: apps.DeploymentStrategy{RollingUpdate: &apps.RollingUpdateDeployment{MaxSurge: to(intstr.FromString("50%")), MaxUnavailable: to(intstr.FromInt32(0))}},
	}}
}

func statefulSet() *apps.StatefulSet {
	claim := core.PersistentVolumeClaim{ObjectMeta: named("data"), Spec: core.PersistentVolumeClaimSpec{
		AccessModes: []core.PersistentVolumeAccessMode{core.ReadWriteOnce},
		Resources:   core.VolumeResourceRequirements{Requests: core.ResourceList{"storage": resource.MustParse("1Gi")}},
	}}
	return &apps.StatefulSet{ObjectMeta: named("sts"), Spec: apps.StatefulSetSpec{
		ServiceName: "svc", Selector: selector(), Template: template(), VolumeClaimTemplates: []core.PersistentVolumeClaim{claim},
	}}
}

func cronJob() *batch.CronJob {
	pods := template()
	pods.Spec.RestartPolicy = core.RestartPolicyNever
	failures := batch.PodFailurePolicyOnExitCodesRequirement{Operator: batch.PodFailurePolicyOnExitCodesOpIn, Values: []int32{1, 200}}
	return &batch.CronJob{ObjectMeta: named("cj"), Spec: batch.CronJobSpec{
		Schedule: "* * * * *", Suspend: to(false), TimeZone: to("Europe/Berlin"),
		JobTemplate: batch.JobTemplateSpec{Spec: batch.JobSpec{
			BackoffLimit: to(int32(0)), Template: pods,
			PodFailurePolicy: &batch.PodFailurePolicy{Rules: []batch.PodFailurePolicyRule{{Action: batch.PodFailurePolicyActionFailJob, OnExitCodes: &failures}}},
		}},
	}}
}

func autoscaler() *autoscaling.HorizontalPodAutoscaler {
	target := autoscaling.MetricTarget{Type: autoscaling.AverageValueMetricType, AverageValue: to(resource.MustParse("100m"))}
	return &autoscaling.HorizontalPodAutoscaler{ObjectMeta: named("hpa"), Spec: autoscaling.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscaling.CrossVersionObjectReference{Kind: "Deployment", Name: "d", APIVersion: "apps/v1"},
		MinReplicas:    to(int32(1)), MaxReplicas: 3,
		Metrics:  []autoscaling.MetricSpec{{Type: autoscaling.ResourceMetricSourceType, Resource: &autoscaling.ResourceMetricSource{Name: "cpu", Target: target}}},
		Behavior: &autoscaling.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscaling.HPAScalingRules{StabilizationWindowSeconds: to(int32(0))}},
	}}
}

func lease() *coordination.Lease {
	moment := metav1.NewMicroTime(time.Unix(1700000000, 123456000))
	return &coordination.Lease{ObjectMeta: named("l"), Spec: coordination.LeaseSpec{
		HolderIdentity: to("me"), LeaseDurationSeconds: to(int32(15)), RenewTime: &moment, AcquireTime: &moment, LeaseTransitions: to(int32(0)),
	}}
}

func signingRequest() *certificates.CertificateSigningRequest {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, key)
	if err != nil {
		panic(err)
	}
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return &certificates.CertificateSigningRequest{ObjectMeta: named("csr"), Spec: certificates.CertificateSigningRequestSpec{
		Request: request, SignerName: "example.com/x", Usages: []certificates.KeyUsage{certificates.UsageClientAuth}, ExpirationSeconds: to(int32(3600)),
	}}
}

func ingress() *networking.Ingress {
	backend := networking.IngressBackend{Service: &networking.IngressServiceBackend{Name: "svc", Port: networking.ServiceBackendPort{Number: 80}}}
	paths := []networking.HTTPIngressPath{{Path: "/", PathType: to(networking.PathTypePrefix), Backend: backend}}
	rule := networking.IngressRule{Host: "x.example.com", IngressRuleValue: networking.IngressRuleValue{HTTP: &networking.HTTPIngressRuleValue{Paths: paths}}}
	return &networking.Ingress{ObjectMeta: named("i"), Spec: networking.IngressSpec{Rules: []networking.IngressRule{rule}}}
}

func clusterRole() *rbac.ClusterRole {
	return &rbac.ClusterRole{ObjectMeta: named("cr"), Rules: []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}
}
