package hooks

import (
	"encoding/json"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"tetrapod/tests/upstream/server"
)

// keptAuthenticator stands for the authenticators that the server has in any case.
type keptAuthenticator struct{ asked bool }

func (k *keptAuthenticator) AuthenticateRequest(*http.Request) (*authenticator.Response, bool, error) {
	k.asked = true
	return nil, false, nil
}

// authenticationFlags serves the authenticator as a token webhook. Without the kept ones, it alone decides.
func authenticationFlags(t testing.TB, request authenticator.Request, kept *keptAuthenticator, directory string, flags []server.Flag) []server.Flag {
	_, _, _ = authenticate(request, "probe")
	kubeconfig := serve(t, directory, "authentication", func(body []byte) (any, error) {
		review := &authenticationv1.TokenReview{}
		if err := json.Unmarshal(body, review); err != nil {
			return nil, err
		}
		response, ok, err := authenticate(request, review.Spec.Token)
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok, Audiences: review.Spec.Audiences}
		if err != nil {
			review.Status.Error = err.Error()
		}
		if ok {
			review.Status.User = authenticationv1.UserInfo{Username: response.User.GetName(), UID: response.User.GetUID(), Groups: response.User.GetGroups()}
			for key, values := range response.User.GetExtra() {
				if review.Status.User.Extra == nil {
					review.Status.User.Extra = map[string]authenticationv1.ExtraValue{}
				}
				review.Status.User.Extra[key] = values
			}
		}
		return review, nil
	})
	flags = with(flags, "authentication-token-webhook-config-file", kubeconfig)
	flags = with(flags, "authentication-token-webhook-version", "v1")
	flags = with(flags, "authentication-token-webhook-cache-ttl", "0s")
	if !kept.asked {
		flags = with(flags, "anonymous-auth", "false")
	}
	return flags
}

func authenticate(request authenticator.Request, token string) (*authenticator.Response, bool, error) {
	r, err := http.NewRequest(http.MethodGet, "https://upstream.test/", nil)
	if err != nil {
		return nil, false, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return request.AuthenticateRequest(r)
}
