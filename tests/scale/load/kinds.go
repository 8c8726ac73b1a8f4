package main

import (
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kind is a kind of objects that the program creates in any number.
type kind struct {
	resource    resource
	contentType string
	// object returns an object with labels. Its data have about size bytes, where the kind has data.
	object func(namespace, name string, size int, labels map[string]string) []byte
}

var kinds = map[string]kind{
	"configmaps": {configMaps, protobuf, func(namespace, name string, size int, labels map[string]string) []byte {
		object := corev1.ConfigMap{ObjectMeta: labelled(namespace, name, labels), Data: map[string]string{"data": text(size)}}
		return encode("v1", "ConfigMap", &object)
	}},
	"secrets": {secrets, protobuf, func(namespace, name string, size int, labels map[string]string) []byte {
		object := corev1.Secret{ObjectMeta: labelled(namespace, name, labels), Data: map[string][]byte{"data": []byte(text(size))}}
		return encode("v1", "Secret", &object)
	}},
	"pods": {pods, protobuf, func(namespace, name string, size int, labels map[string]string) []byte {
		object := corev1.Pod{ObjectMeta: labelled(namespace, name, labels), Spec: (&app{name: name}).podSpec()}
		object.Spec.Containers[0].Env = append(object.Spec.Containers[0].Env, corev1.EnvVar{Name: "DATA", Value: text(size)})
		return encode("v1", "Pod", &object)
	}},
	"leases": {leases, protobuf, func(namespace, name string, _ int, _ map[string]string) []byte {
		return leaseObject(namespace, name, "", 40)
	}},
	"events": {coreEvents, protobuf, func(namespace, name string, size int, labels map[string]string) []byte {
		object := corev1.Event{ObjectMeta: labelled(namespace, name, labels), Message: text(min(size, 1000)), Reason: "Load", Type: "Normal",
			InvolvedObject: corev1.ObjectReference{Namespace: namespace, Name: name}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1}
		return encode("v1", "Event", &object)
	}},
	"widgets": {widgets, jsonType, func(namespace, name string, _ int, _ map[string]string) []byte { return widgetObject(namespace, name) }},
	"customresourcedefinitions": {definitions, jsonType, func(_, name string, _ int, _ map[string]string) []byte {
		return []byte(strings.NewReplacer(`"widgets`, `"`+name+"s", `"widget"`, `"`+name+`"`, `"Widget"`, `"`+strings.ToUpper(name[:1])+name[1:]+`"`).Replace(definition))
	}},
}

func labelled(namespace, name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
}

// kindOf returns the kind with this plural name.
func kindOf(plural string) (kind, error) {
	if one, ok := kinds[plural]; ok {
		return one, nil
	}
	names := []string{}
	for name := range kinds {
		names = append(names, name)
	}
	sort.Strings(names)
	return kind{}, fmt.Errorf("no kind %q: one of %s", plural, strings.Join(names, ", "))
}

// nameOf returns the name of the object with this number, which is a valid plural name's stem too.
func nameOf(number int) string { return fmt.Sprintf("object%d", number) }
