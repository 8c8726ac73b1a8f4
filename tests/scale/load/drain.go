package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// runDrain deletes a namespace, or with a kind all of its objects by one request, and waits until nothing is left. A server that
// ends the request before it is done, at its request timeout, is asked again.
func runDrain(ctx context.Context, set *flag.FlagSet, arguments []string) error {
	namespace := set.String("namespace", "", "namespace to delete")
	plural := set.String("collection", "", "delete the objects of this kind (plural) by one DELETECOLLECTION, and not the namespace")
	selector := set.String("selector", "app=objects", "label selector of --collection: controllers create objects of their own again")
	patience := set.Duration("patience", 30*time.Minute, "how long to wait until nothing is left")
	c, err := parse("drain", set, arguments)
	if err != nil {
		return err
	}
	if *namespace == "" {
		return errors.New("--namespace is missing")
	}
	// A deletion of many objects takes longer than other requests.
	c.admin.timeout = *patience
	ctx, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	// The requests that wait are not measured: the last one is answered by 404.
	waiting := c.target.administrator("load-waiting")
	waiting.record = newRecorder()
	ask := &request{verb: "DELETE", resource: namespaces, name: *namespace, body: deleteOptions(0, "")}
	gone := func() (bool, error) {
		_, err := waiting.do(ctx, &request{verb: "GET", resource: namespaces, name: *namespace}, time.Now())
		return hasCode(err, 404), nil
	}
	if *plural != "" {
		of, err := kindOf(*plural)
		if err != nil {
			return err
		}
		ask = &request{verb: "DELETECOLLECTION", resource: of.resource, namespace: *namespace, body: deleteOptions(0, ""), discard: true,
			query: url.Values{"labelSelector": {*selector}}}
		gone = func() (bool, error) {
			list := &request{verb: "LIST", resource: of.resource, namespace: *namespace, accept: jsonType, query: url.Values{"limit": {"1"}, "labelSelector": {*selector}}}
			answer, err := waiting.do(ctx, list, time.Now())
			return strings.Contains(string(answer), `"items":[]`), err
		}
	}
	announce("begin", nil)
	end := c.measure(ctx)
	begun := time.Now()
	sent := 1
	for ; ; sent++ {
		_, err := c.admin.do(ctx, ask, time.Now())
		if err == nil {
			break
		}
		var status *statusError
		if ctx.Err() != nil || errors.As(err, &status) && status.code != http.StatusGatewayTimeout {
			return err
		}
	}
	answered := time.Since(begun).Seconds()
	announce("answered", map[string]any{"seconds": answered, "requests": sent})
	for {
		done, err := gone()
		if err != nil {
			return err
		}
		if done {
			break
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return errors.New("objects are left")
		}
	}
	seconds := time.Since(begun).Seconds()
	end()
	c.result.Objects = &objectsResult{Seconds: seconds}
	announce("end", map[string]any{"seconds": seconds, "answered": answered, "requests": sent})
	return c.finish(nil)
}
