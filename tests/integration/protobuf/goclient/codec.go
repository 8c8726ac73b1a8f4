package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// translate answers each line: "{…" is an object in JSON, everything else protobuf in base64. An answer that begins
// with "!" tells why there is none.
func translate(in io.Reader, out io.Writer) int {
	types := scheme.Scheme
	utilruntime.Must(apiextensions.AddToScheme(types))
	utilruntime.Must(apiregistration.AddToScheme(types))
	utilruntime.Must(metav1.AddMetaToScheme(types))
	text := json.NewSerializerWithOptions(json.DefaultMetaFactory, types, types, json.SerializerOptions{})
	binary := protobuf.NewSerializer(types, types)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	answers := bufio.NewWriter(out)
	defer answers.Flush()
	for lines.Scan() {
		answer, err := one(lines.Bytes(), text, binary)
		if err != nil {
			answer = fmt.Appendf(nil, "!%q", err.Error())
		}
		answers.Write(bytes.TrimSpace(answer))
		answers.WriteByte('\n')
	}
	return 0
}

func one(line []byte, text, binary runtime.Serializer) ([]byte, error) {
	if bytes.HasPrefix(line, []byte("{")) {
		object, _, err := text.Decode(line, nil, nil)
		if err != nil {
			return nil, err
		}
		encoded, err := runtime.Encode(binary, object)
		return []byte(base64.StdEncoding.EncodeToString(encoded)), err
	}
	data, err := base64.StdEncoding.DecodeString(string(line))
	if err != nil {
		return nil, err
	}
	object, kind, err := binary.Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	return runtime.Encode(text, object)
}
