package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"time"
)

// command is what the smaller commands share.
type command struct {
	target *target
	record *recorder
	admin  *client
	pacer  *pacer
	probes float64
	out    string
	result *result
}

// parse adds the common flags, parses all and connects.
func parse(name string, set *flag.FlagSet, arguments []string) (*command, error) {
	c := &command{target: &target{}, record: newRecorder()}
	c.target.flags(set)
	set.Float64Var(&c.probes, "probe-rate", 20, "GETs of a namespace each second by another client, whose latency shows what others notice")
	set.StringVar(&c.out, "out", "", "file for the result (JSON)")
	if err := set.Parse(arguments); err != nil {
		return nil, err
	}
	if err := c.target.prepare(c.record); err != nil {
		return nil, err
	}
	c.admin = c.target.administrator("load-administrator")
	c.pacer = &pacer{record: c.record, most: 100_000}
	c.result = newResult(name, set)
	return c, nil
}

// measure begins the measured phase with its probes, and returns the function that ends it.
func (c *command) measure(ctx context.Context) (end func()) {
	probing, stop := context.WithCancel(ctx)
	probe := c.target.user("load-probe", "scale-probe", "system:masters")
	c.record.begin()
	c.result.begin()
	c.pacer.run(probing, c.probes, 0, func(_ int, scheduled time.Time) {
		ask := &request{verb: "GET", resource: namespaces, name: "default"}
		_, _ = probe.do(context.WithoutCancel(probing), ask, scheduled)
	})
	return func() {
		c.record.end()
		stop()
		c.result.end()
	}
}

// finish waits for the last answers and writes the result.
func (c *command) finish(watches *watchCounters) error {
	c.pacer.wait(c.target.timeout)
	r := c.result
	r.sum(c.record, c.pacer)
	if watches != nil {
		r.Watches["watchers"] = watchesOf(watches)
	}
	return r.write(c.out)
}

// create sends a POST. An object that exists already is no error.
func create(ctx context.Context, by *client, to resource, namespace string, body []byte, contentType string) ([]byte, error) {
	ask := &request{verb: "POST", resource: to, namespace: namespace, body: body, contentType: contentType}
	answer, err := by.call(ctx, ask, time.Now())
	if hasCode(err, 409) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("POST %s: %w", ask.path(), err)
	}
	return answer, nil
}

// createNamespace creates a namespace with what pods in it need.
func createNamespace(ctx context.Context, by *client, name string) error {
	objects := []struct {
		to        resource
		namespace string
		body      []byte
	}{
		{namespaces, "", namespaceObject(name)},
		// Otherwise controllers create these, and they may not run.
		{serviceAccounts, name, serviceAccountObject(name)},
		{configMaps, name, rootCertificatesObject(name)},
	}
	for _, object := range objects {
		if _, err := create(ctx, by, object.to, object.namespace, object.body, ""); err != nil {
			return err
		}
	}
	return nil
}

// createDefinition creates the definition of the widgets, and waits until they are served.
func createDefinition(ctx context.Context, by *client) error {
	if _, err := create(ctx, by, definitions, "", []byte(definition), jsonType); err != nil {
		return err
	}
	ask := &request{verb: "LIST", resource: widgets, accept: jsonType}
	for deadline := time.Now().Add(time.Minute); ; {
		_, err := by.call(ctx, ask, time.Now())
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// currentVersion returns the version of the store, from a list of one object.
func currentVersion(ctx context.Context, by *client) (string, error) {
	answer, err := by.call(ctx, &request{verb: "LIST", resource: namespaces, query: url.Values{"limit": {"1"}}}, time.Now())
	if err != nil {
		return "", err
	}
	version, _ := listOf(answer)
	return version, nil
}
