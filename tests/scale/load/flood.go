package main

import (
	"context"
	"fmt"
	"time"
)

// fillFlood gives the user of the flood the role view.
func (c *cluster) fillFlood(ctx context.Context) error {
	if c.flood == 0 {
		return nil
	}
	binding := fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"scale-flood"},`+
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},`+
		`"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}]}`, c.floodUser)
	to := resource{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", false}
	_, err := create(ctx, c.admin, to, "", []byte(binding), jsonType)
	return err
}

// startFlood sends requests on several streams, each as soon as the one before is answered, until the context ends.
// Their latencies are recorded apart from the others. It returns nil without a flood.
func (c *cluster) startFlood(ctx context.Context) *recorder {
	if c.flood == 0 {
		return nil
	}
	apart := *c.target
	apart.record = newRecorder()
	if c.floodToken != "" {
		apart.tokens = map[string]string{c.floodUser: c.floodToken}
	}
	by := apart.user("load-flood", c.floodUser, "system:authenticated")
	ask := request{verb: "LIST", resource: pods, namespace: c.apps[0].namespace, discard: true}
	switch c.floodRequest {
	case "list-all":
		ask.namespace = ""
	case "get":
		ask = request{verb: "GET", resource: namespaces, name: c.apps[0].namespace, discard: true}
	}
	apart.record.begin()
	for range c.flood {
		c.pacer.tasks.Go(func() {
			for ctx.Err() == nil {
				_, err := by.do(ctx, &ask, time.Now())
				if failureOf(err) == "connection" && !sleep(ctx, 100*time.Millisecond) {
					return
				}
			}
		})
	}
	return apart.record
}
