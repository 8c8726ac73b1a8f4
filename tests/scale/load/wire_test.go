package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestFieldsOfAnEncodedPodAreFound(t *testing.T) {
	now := metav1.Now()
	encoded := encode("v1", "Pod", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "team", UID: "u", ResourceVersion: "42", DeletionTimestamp: &now, Generation: 3,
			Annotations: map[string]string{"a": "b", "k8s.io/initial-events-end": "true"},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c"}}},
	})
	object, ok := unwrap(encoded)
	if !ok {
		t.Fatal("no envelope")
	}
	m := metaOf(object)
	if string(m.name) != "web" || string(m.namespace) != "team" || string(m.uid) != "u" || !m.deleting || !m.initialEventsEnd {
		t.Errorf("%+v", m)
	}
	if versionOf(encoded) != "42" {
		t.Errorf("version %s", versionOf(encoded))
	}
}

func TestAbsentFieldsAreEmpty(t *testing.T) {
	object, _ := unwrap(encode("v1", "Pod", &corev1.Pod{}))
	if m := metaOf(object); len(m.name) > 0 || m.deleting || m.initialEventsEnd {
		t.Errorf("%+v", m)
	}
	inJSON := []byte(`{"kind":"Pod","metadata":{"resourceVersion":"43"}}`)
	if _, ok := unwrap(inJSON); ok || versionOf(inJSON) != "43" {
		t.Error("JSON has no envelope")
	}
}

func TestContinueTokenOfAList(t *testing.T) {
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"}, Items: []corev1.Pod{{}, {}}}
	if version, next := listOf(encode("v1", "PodList", &list)); version != "7" || next != "next" {
		t.Errorf("%s %s", version, next)
	}
}

func TestTruncatedMessagesEndTheSearch(t *testing.T) {
	object, _ := unwrap(encode("v1", "Pod", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "42"}}))
	for length := range object {
		metaOf(object[:length])
	}
}
