package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	namespace    = "default"
)

var failures int

func failed(what string, err error) {
	failures++
	fmt.Printf("%s: %v\n", what, err)
}

// live runs every exercise, each of which reports what it finds wrong.
func live(kubeconfig string) int {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	config.QPS, config.Burst = 1000, 1000
	config.ContentType = protobufType
	config.AcceptContentTypes = protobufType // nothing else will do
	context, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := kubernetes.NewForConfigOrDie(config)
	objects(context, client)
	subresources(context, client)
	reviews(context, client)
	rejections(context, client)
	watchLists(context, client)
	metadataOnly(context, config)
	documents(config)
	if failures > 0 {
		return 1
	}
	fmt.Println("ok")
	return 0
}
