// A program as operators are written in Go: client-go's typed clients (protobuf), shared informers, dynamic client, discovery.
// It does its work in the namespace of its first argument, against $KUBECONFIG, and prints one line for each thing that it saw.
// With a number as second argument it runs as many informers instead.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

var widgets = schema.GroupVersionResource{Group: "e2e.example.com", Version: "v1", Resource: "widgets"}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func next(events <-chan string, want string) {
	select {
	case event := <-events:
		fmt.Println("informer", event)
		if event != want {
			must(fmt.Errorf("informer said %q, not %q", event, want))
		}
	case <-time.After(20 * time.Second):
		must(fmt.Errorf("informer never said %q", want))
	}
}

func main() {
	namespace := os.Args[1]
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(err)
	if len(os.Args) > 2 {
		count, err := strconv.Atoi(os.Args[2])
		must(err)
		manyInformers(config, namespace, count)
		return
	}
	client, err := kubernetes.NewForConfig(config)
	must(err)
	version, err := client.Discovery().ServerVersion()
	must(err)
	fmt.Println("version", version.Major, version.Minor)

	configMaps(ctx, client, namespace)
	deployments(ctx, client, namespace)
	untyped, err := dynamic.NewForConfig(config)
	must(err)
	customResources(ctx, untyped, namespace)
	fmt.Println("done")
}

func configMaps(ctx context.Context, client kubernetes.Interface, namespace string) {
	events := make(chan string, 16)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "made-by=go" }))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { events <- "added " + o.(*corev1.ConfigMap).Data["n"] },
		UpdateFunc: func(_, o any) { events <- "updated " + o.(*corev1.ConfigMap).Data["n"] },
		DeleteFunc: func(o any) { events <- "deleted" },
	})
	must(err)
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		must(fmt.Errorf("the informer never synced"))
	}
	api := client.CoreV1().ConfigMaps(namespace)
	meta := metav1.ObjectMeta{Name: "from-go", Labels: map[string]string{"made-by": "go"}}
	_, err = api.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"n": "1"}, BinaryData: map[string][]byte{"b": {0, 255}}}, metav1.CreateOptions{})
	must(err)
	next(events, "added 1")
	must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		found, err := api.Get(ctx, "from-go", metav1.GetOptions{})
		if err != nil {
			return err
		}
		found.Data["n"] = "2"
		_, err = api.Update(ctx, found, metav1.UpdateOptions{})
		return err
	}))
	next(events, "updated 2")
	_, err = api.Patch(ctx, "from-go", types.StrategicMergePatchType, []byte(`{"data": {"n": "3"}}`), metav1.PatchOptions{})
	must(err)
	next(events, "updated 3")
	_, err = api.Apply(ctx, applycore.ConfigMap("from-go", namespace).WithData(map[string]string{"n": "4"}), metav1.ApplyOptions{FieldManager: "go", Force: true})
	must(err)
	next(events, "updated 4")
	must(api.Delete(ctx, "from-go", metav1.DeleteOptions{}))
	next(events, "deleted")
	if _, err = api.Get(ctx, "from-go", metav1.GetOptions{}); !errors.IsNotFound(err) {
		must(fmt.Errorf("not a NotFound: %v", err))
	}
}

func deployments(ctx context.Context, client kubernetes.Interface, namespace string) {
	api := client.AppsV1().Deployments(namespace)
	labels := map[string]string{"app": "go"}
	two := int32(2)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "go", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &two,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example/go:1"}}},
			},
		},
	}
	created, err := api.Create(ctx, deployment, metav1.CreateOptions{})
	must(err)
	fmt.Println("deployment", *created.Spec.Replicas, created.Spec.Strategy.Type, created.Generation)
	created.Status.ReadyReplicas = 2
	created.Status.Replicas = 2
	_, err = api.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	must(err)
	scale, err := api.GetScale(ctx, "go", metav1.GetOptions{})
	must(err)
	scale.Spec.Replicas = 5
	_, err = api.UpdateScale(ctx, "go", scale, metav1.UpdateOptions{})
	must(err)
	list, err := api.List(ctx, metav1.ListOptions{LabelSelector: "app=go"})
	must(err)
	fmt.Println("listed", len(list.Items), *list.Items[0].Spec.Replicas, list.Items[0].Status.ReadyReplicas)
	must(api.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=go"}))
}

func customResources(ctx context.Context, client dynamic.Interface, namespace string) {
	api := client.Resource(widgets).Namespace(namespace)
	watch, err := api.Watch(ctx, metav1.ListOptions{})
	must(err)
	defer watch.Stop()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "e2e.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "go"}, "spec": map[string]any{"size": int64(3)},
	}}
	created, err := api.Create(ctx, widget, metav1.CreateOptions{})
	must(err)
	color, _, _ := unstructured.NestedString(created.Object, "spec", "color")
	select {
	case event := <-watch.ResultChan():
		fmt.Println("widget", event.Type, color)
	case <-ctx.Done():
		must(ctx.Err())
	}
	must(api.Delete(ctx, "go", metav1.DeleteOptions{}))
}
