package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// typed is what client-go generates for a kind.
type typed[T, L runtime.Object] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

func objects(ctx context.Context, client kubernetes.Interface) {
	core := client.CoreV1()
	exercise(ctx, "ConfigMap", core.ConfigMaps(namespace), configMap())
	exercise(ctx, "Secret", core.Secrets(namespace), secret())
	exercise(ctx, "Pod", core.Pods(namespace), pod())
	exercise(ctx, "Service", core.Services(namespace), service())
	exercise(ctx, "Event", core.Events(namespace), event())
	exercise(ctx, "PersistentVolume", core.PersistentVolumes(), persistentVolume())
	exercise(ctx, "Deployment", client.AppsV1().Deployments(namespace), deployment())
	exercise(ctx, "StatefulSet", client.AppsV1().StatefulSets(namespace), statefulSet())
	exercise(ctx, "CronJob", client.BatchV1().CronJobs(namespace), cronJob())
	exercise(ctx, "HorizontalPodAutoscaler", client.AutoscalingV2().HorizontalPodAutoscalers(namespace), autoscaler())
	exercise(ctx, "Lease", client.CoordinationV1().Leases(namespace), lease())
	exercise(ctx, "CertificateSigningRequest", client.CertificatesV1().CertificateSigningRequests(), signingRequest())
	exercise(ctx, "Ingress", client.NetworkingV1().Ingresses(namespace), ingress())
	exercise(ctx, "ClusterRole", client.RbacV1().ClusterRoles(), clusterRole())
}

// exercise takes an object through its life; every answer and every event has to be the object that was written.
func exercise[T, L runtime.Object](ctx context.Context, kind string, client typed[T, L], object T) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := life(ctx, client, object); err != nil {
		failed(kind, err)
	}
}

func life[T, L runtime.Object](ctx context.Context, client typed[T, L], object T) error {
	wanted, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	name := wanted.GetName()
	before, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	revision, err := meta.NewAccessor().ResourceVersion(before)
	if err != nil || revision == "" {
		return fmt.Errorf("a list without a resourceVersion: %v", err)
	}
	events, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: revision, FieldSelector: "metadata.name=" + name})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer events.Stop()

	created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: "test"})
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if err := kept(object, created); err != nil {
		return fmt.Errorf("created: %w", err)
	}
	read, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if err := same("read", created, read); err != nil {
		return err
	}
	if err := next(events, watch.Added, created); err != nil {
		return err
	}
	listed, err := client.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	items, err := meta.ExtractList(listed)
	if err != nil || len(items) != 1 {
		return fmt.Errorf("%d items: %v", len(items), err)
	}
	if err := same("listed", created, items[0]); err != nil {
		return err
	}

	patched, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"patched":"yes"}}}`), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	if err := next(events, watch.Modified, patched); err != nil {
		return err
	}
	change, _ := meta.Accessor(patched)
	if change.GetLabels()["patched"] != "yes" {
		return fmt.Errorf("labels after the patch: %v", change.GetLabels())
	}
	change.SetAnnotations(map[string]string{"updated": "ü"})
	change.SetFinalizers(nil) // which protect volumes from deletion
	updated, err := client.Update(ctx, patched, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	if err := next(events, watch.Modified, updated); err != nil {
		return err
	}
	uid := change.GetUID()
	now := int64(0)
	policy := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, GracePeriodSeconds: &now, PropagationPolicy: &policy}
	if err := client.Delete(ctx, name, options); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	for event := range events.ResultChan() { // of a graceful deletion, the object is modified first
		if event.Type == watch.Deleted {
			return nil
		}
		if event.Type != watch.Modified {
			return fmt.Errorf("event %s after the deletion", event.Type)
		}
	}
	return fmt.Errorf("no DELETED event")
}

func next(events watch.Interface, wanted watch.EventType, object runtime.Object) error {
	event, open := <-events.ResultChan()
	if !open || event.Type != wanted {
		return fmt.Errorf("event %q instead of %s: %v", event.Type, wanted, event.Object)
	}
	return same("watched", object, event.Object)
}

func same(what string, wanted, found runtime.Object) error {
	for _, object := range []runtime.Object{wanted, found} { // which typed clients leave out, watches do not
		object.GetObjectKind().SetGroupVersionKind(found.GetObjectKind().GroupVersionKind())
	}
	if !equality.Semantic.DeepEqual(wanted, found) {
		return fmt.Errorf("%s is another object: %s", what, diff.Diff(wanted, found))
	}
	return nil
}

// kept says what of the written object is not in the answer, which may have more: defaults, and what the system sets.
func kept(wrote, answer runtime.Object) error {
	wanted, found := asJSON(wrote), asJSON(answer)
	delete(wanted, "status")
	if missing := missingIn(wanted, found, ""); missing != "" {
		return fmt.Errorf("%s was written and is not there", missing)
	}
	return nil
}

func asJSON(object runtime.Object) map[string]any {
	data, _ := json.Marshal(object)
	decoded := map[string]any{}
	_ = json.Unmarshal(data, &decoded)
	return decoded
}

func missingIn(wanted, found any, path string) string {
	switch wanted := wanted.(type) {
	case nil:
		return ""
	case map[string]any:
		object, _ := found.(map[string]any)
		for key, value := range wanted {
			if missing := missingIn(value, object[key], path+"."+key); missing != "" {
				return missing
			}
		}
	case []any:
		list, _ := found.([]any)
		if len(list) < len(wanted) {
			return path
		}
		for index, value := range wanted {
			if missing := missingIn(value, list[index], fmt.Sprintf("%s[%d]", path, index)); missing != "" {
				return missing
			}
		}
	default:
		if wanted != found {
			return fmt.Sprintf("%s (%v, not %v)", path, wanted, found)
		}
	}
	return ""
}
