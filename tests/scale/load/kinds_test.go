package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestDefinitionsAreNamedAfterTheirKind(t *testing.T) {
	body := kinds["customresourcedefinitions"].object("", nameOf(7), 0, nil)
	one := struct {
		Metadata struct{ Name string }
		Spec     struct {
			Group string
			Names struct{ Plural, Singular, Kind string }
		}
	}{}
	if err := json.Unmarshal(body, &one); err != nil {
		t.Fatal(err)
	}
	if one.Metadata.Name != "object7s.scale.tetrapod.dev" || one.Spec.Group != "scale.tetrapod.dev" ||
		one.Spec.Names.Plural != "object7s" || one.Spec.Names.Singular != "object7" || one.Spec.Names.Kind != "Object7" {
		t.Errorf("%+v", one)
	}
}

func TestObjectsHaveTheirDataAndName(t *testing.T) {
	for name, kind := range kinds {
		if !kind.resource.namespaced {
			continue
		}
		body := kind.object("team", "object1", 300, map[string]string{"app": "objects"})
		if !bytes.Contains(body, []byte("object1")) || !bytes.Contains(body, []byte("team")) {
			t.Errorf("%s: %q", name, body)
		}
	}
	if _, err := kindOf("ships"); err == nil {
		t.Error("an unknown kind is accepted")
	}
}
