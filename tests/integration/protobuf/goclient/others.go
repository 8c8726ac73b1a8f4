package main

import (
	"context"
	"fmt"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// subresources: a Scale, a Binding, an Eviction and a TokenRequest are sent and answered.
func subresources(ctx context.Context, client kubernetes.Interface) {
	deployments := client.AppsV1().Deployments(namespace)
	if _, err := deployments.Create(ctx, deployment(), metav1.CreateOptions{}); err != nil {
		failed("deployment", err)
	}
	scale, err := deployments.GetScale(ctx, "d", metav1.GetOptions{})
	if err != nil || scale.Spec.Replicas != 0 {
		failed("scale", fmt.Errorf("%v: %w", scale, err))
	} else {
		scale.Spec.Replicas = 7
		if scale, err = deployments.UpdateScale(ctx, "d", scale, metav1.UpdateOptions{}); err != nil || scale.Spec.Replicas != 7 {
			failed("update of a scale", fmt.Errorf("%v: %w", scale, err))
		}
	}
	pods := client.CoreV1().Pods(namespace)
	if _, err := pods.Create(ctx, pod(), metav1.CreateOptions{}); err != nil {
		failed("pod", err)
	}
	binding := &core.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: core.ObjectReference{Kind: "Node", Name: "n"}}
	if err := pods.Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		failed("binding", err)
	}
	if err := pods.EvictV1(ctx, &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p"}}); err != nil {
		failed("eviction", err)
	}
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{Audiences: []string{"a"}}}
	accounts := client.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(ctx, &core.ServiceAccount{ObjectMeta: named("robot")}, metav1.CreateOptions{}); err != nil {
		failed("service account", err)
	}
	token, err := accounts.CreateToken(ctx, "robot", request, metav1.CreateOptions{})
	if err != nil || token.Status.Token == "" || token.Status.ExpirationTimestamp.IsZero() {
		failed("token request", fmt.Errorf("%v: %w", token, err))
	}
}

func reviews(ctx context.Context, client kubernetes.Interface) {
	self := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
		NonResourceAttributes: &authorization.NonResourceAttributes{Path: "/x", Verb: "get"},
	}}
	if answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, self, metav1.CreateOptions{}); err != nil || !answer.Status.Allowed {
		failed("self review", fmt.Errorf("%v: %w", answer, err))
	}
	other := &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: "nobody", Extra: map[string]authorization.ExtraValue{"example.com/scopes": {"a", "b"}},
		ResourceAttributes: &authorization.ResourceAttributes{Verb: "get", Resource: "pods"},
	}}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, other, metav1.CreateOptions{})
	if err != nil || answer.Status.Allowed || len(answer.Spec.Extra["example.com/scopes"]) != 2 {
		failed("review of somebody", fmt.Errorf("%v: %w", answer, err))
	}
	token := &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: "none of ours"}}
	if answer, err := client.AuthenticationV1().TokenReviews().Create(ctx, token, metav1.CreateOptions{}); err != nil || answer.Status.Authenticated {
		failed("token review", fmt.Errorf("%v: %w", answer, err))
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authentication.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || who.Status.UserInfo.Username == "" {
		failed("who am I", fmt.Errorf("%v: %w", who, err))
	}
}

// rejections are Status messages with their details.
func rejections(ctx context.Context, client kubernetes.Interface) {
	maps := client.CoreV1().ConfigMaps(namespace)
	if _, err := maps.Get(ctx, "nope", metav1.GetOptions{}); !errors.IsNotFound(err) {
		failed("get of nothing", err)
	}
	_, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Bad Name"}}, metav1.CreateOptions{})
	status, known := err.(errors.APIStatus)
	if !errors.IsInvalid(err) || !known || len(status.Status().Details.Causes) != 1 {
		failed("invalid", err)
	}
	if _, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "a=("}); !errors.IsBadRequest(err) {
		failed("bad selector", err)
	}
}

// watchLists: initial events, a bookmark that ends them, and its annotation.
func watchLists(ctx context.Context, client kubernetes.Interface) {
	yes := true
	options := metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	events, err := client.CoreV1().Namespaces().Watch(ctx, options)
	if err != nil {
		failed("watch list", err)
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Bookmark {
			bookmark := event.Object.(*core.Namespace)
			if bookmark.ResourceVersion == "" || bookmark.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				failed("bookmark", fmt.Errorf("%v", bookmark))
			}
			return
		}
		if _, expected := event.Object.(*core.Namespace); event.Type != watch.Added || !expected {
			failed("watch list", fmt.Errorf("%s %v", event.Type, event.Object))
		}
	}
}

func metadataOnly(ctx context.Context, config *rest.Config) {
	client := metadata.NewForConfigOrDie(metadata.ConfigFor(config)).Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) < 4 || list.ResourceVersion == "" {
		failed("metadata list", fmt.Errorf("%v: %w", list, err))
		return
	}
	one, err := client.Get(ctx, "default", metav1.GetOptions{})
	if err != nil || one.Name != "default" || one.UID == "" {
		failed("metadata", fmt.Errorf("%v: %w", one, err))
	}
	events, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		failed("metadata watch", err)
		return
	}
	defer events.Stop()
	event := <-events.ResultChan()
	if found, known := event.Object.(*metav1.PartialObjectMetadata); !known || found.Name != "default" {
		failed("metadata watch", fmt.Errorf("%v", event))
	}
}

func documents(config *rest.Config) {
	for _, old := range []bool{true, false} {
		client := discovery.NewDiscoveryClientForConfigOrDie(config)
		client.UseLegacyDiscovery = old
		groups, resources, err := client.ServerGroupsAndResources()
		if err != nil || len(groups) < 10 || len(resources) < 10 {
			failed("discovery", fmt.Errorf("%d groups, %d lists: %w", len(groups), len(resources), err))
		}
		if err == nil && len(resources[0].APIResources[0].Verbs) == 0 {
			failed("discovery", fmt.Errorf("no verbs: %v", resources[0].APIResources[0]))
		}
	}
}
