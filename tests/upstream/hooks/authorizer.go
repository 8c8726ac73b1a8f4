package hooks

import (
	"context"
	"encoding/json"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"tetrapod/tests/upstream/server"
)

// keptAuthorizer stands for the authorizers that the flags name.
type keptAuthorizer struct {
	authorizer.Authorizer
	asked bool
}

func (k *keptAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	k.asked = true
	return authorizer.DecisionNoOpinion, "", nil
}

// authorizationFlags serves the authorizer as a webhook before the kept ones, or instead of them.
func authorizationFlags(t testing.TB, delegate authorizer.Authorizer, kept *keptAuthorizer, directory string, flags []server.Flag) []server.Flag {
	probe := &authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "upstream-probe"}, Verb: "get", Path: "/upstream-probe"}
	_, _, _ = delegate.Authorize(context.Background(), probe)
	kubeconfig := serve(t, directory, "authorization", func(body []byte) (any, error) {
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.Unmarshal(body, review); err != nil {
			return nil, err
		}
		decision, reason, err := delegate.Authorize(context.Background(), attributes(review.Spec))
		review.Status = authorizationv1.SubjectAccessReviewStatus{
			Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
		}
		if err != nil {
			review.Status.EvaluationError = err.Error()
		}
		return review, nil
	})
	modes := "Webhook"
	if kept.asked {
		modes += "," + value(flags, "authorization-mode", "AlwaysAllow")
	}
	flags = with(flags, "authorization-mode", modes)
	flags = with(flags, "authorization-webhook-config-file", kubeconfig)
	flags = with(flags, "authorization-webhook-version", "v1")
	flags = with(flags, "authorization-webhook-cache-authorized-ttl", "0s")
	return with(flags, "authorization-webhook-cache-unauthorized-ttl", "0s")
}

func attributes(spec authorizationv1.SubjectAccessReviewSpec) authorizer.Attributes {
	extra := map[string][]string{}
	for key, values := range spec.Extra {
		extra[key] = values
	}
	record := &authorizer.AttributesRecord{User: &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: extra}}
	if path := spec.NonResourceAttributes; path != nil {
		record.Verb, record.Path = path.Verb, path.Path
	}
	if resource := spec.ResourceAttributes; resource != nil {
		record.ResourceRequest = true
		record.Verb, record.Namespace, record.Name = resource.Verb, resource.Namespace, resource.Name
		record.APIGroup, record.APIVersion = resource.Group, resource.Version
		record.Resource, record.Subresource = resource.Resource, resource.Subresource
	}
	return record
}
