package main

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Answers and events are read for a few fields only. Decoding the whole objects would cost the generator more CPU time
// than the server spends on an event.

var magic = []byte("k8s\x00")

type marshaler interface {
	Marshal() ([]byte, error)
}

// encode returns an object in the protobuf envelope of the API.
func encode(apiVersion, kind string, object marshaler) []byte {
	raw, err := object.Marshal()
	if err != nil {
		panic(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		panic(err)
	}
	return append(append([]byte{}, magic...), body...)
}

// field returns the last value of a length-delimited field.
func field(message []byte, number protowire.Number) []byte {
	var value []byte
	fields(message, func(seen protowire.Number, content []byte) bool {
		if seen == number {
			value = content
		}
		return true
	})
	return value
}

// firstField returns the first value of a length-delimited field, and reads no further.
func firstField(message []byte, number protowire.Number) []byte {
	var value []byte
	fields(message, func(seen protowire.Number, content []byte) bool {
		if seen == number {
			value = content
			return false
		}
		return true
	})
	return value
}

// fields calls a function for each length-delimited field until it returns false or the message ends.
func fields(message []byte, each func(protowire.Number, []byte) bool) {
	for len(message) > 0 {
		number, kind, length := protowire.ConsumeTag(message)
		if length < 0 {
			return
		}
		message = message[length:]
		if kind != protowire.BytesType {
			if length = protowire.ConsumeFieldValue(number, kind, message); length < 0 {
				return
			}
			message = message[length:]
			continue
		}
		content, length := protowire.ConsumeBytes(message)
		if length < 0 || !each(number, content) {
			return
		}
		message = message[length:]
	}
}

// unwrap returns the object in an envelope.
func unwrap(body []byte) ([]byte, bool) {
	if !bytes.HasPrefix(body, magic) {
		return nil, false
	}
	return firstField(body[len(magic):], 2), true
}

// meta are the fields of an object that the generator uses.
type meta struct {
	namespace, name, uid, resourceVersion []byte
	deleting                              bool
	initialEventsEnd                      bool
}

var endOfInitialEvents = []byte("k8s.io/initial-events-end")

// metaOf reads ObjectMeta, which is field 1 of every object.
func metaOf(object []byte) (m meta) {
	fields(firstField(object, 1), func(number protowire.Number, content []byte) bool {
		switch number {
		case 1:
			m.name = content
		case 3:
			m.namespace = content
		case 5:
			m.uid = content
		case 6:
			m.resourceVersion = content
		case 9:
			m.deleting = true
		case 12:
			m.initialEventsEnd = m.initialEventsEnd || bytes.Equal(firstField(content, 1), endOfInitialEvents)
		}
		return true
	})
	return m
}

// versionOf returns the resource version of an object in protobuf or JSON.
func versionOf(body []byte) string {
	if object, ok := unwrap(body); ok {
		return string(metaOf(object).resourceVersion)
	}
	object := metav1.PartialObjectMetadata{}
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.ResourceVersion
}

// listOf returns the resource version and the continue token of an encoded list.
func listOf(body []byte) (version, next string) {
	list, ok := unwrap(body)
	if !ok {
		return "", ""
	}
	listMeta := firstField(list, 1)
	return string(field(listMeta, 2)), string(field(listMeta, 3))
}
