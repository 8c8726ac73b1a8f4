package main

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"time"
)

// watcherOptions are the flags of many watchers of one collection.
type watcherOptions struct {
	plural, namespace string
	cluster           bool
	streams           int
	connections       int
	watchList         bool
}

func (o *watcherOptions) flags(set *flag.FlagSet) {
	set.StringVar(&o.plural, "resource", "configmaps", "what is watched (plural)")
	set.StringVar(&o.namespace, "namespace", "scale-watches", "namespace that is watched, which is created if it is absent")
	set.BoolVar(&o.cluster, "cluster-wide", false, "watch all namespaces")
	set.IntVar(&o.streams, "streams", 100, "watches of one connection")
	set.IntVar(&o.connections, "connections", 0, "TLS connections (0: as many as the streams need)")
	set.BoolVar(&o.watchList, "watch-list", true, "get initial objects from the watch, not from a list before it")
}

// clients returns the connections for a number of watchers. Each has been used once, so that no second one is opened.
func (o *watcherOptions) clients(ctx context.Context, c *command, count int) ([]*client, error) {
	connections := o.connections
	if connections == 0 {
		connections = (count + o.streams - 1) / o.streams
	}
	clients := make([]*client, connections)
	err := limit(ctx, connections, 16, 0, func(number int) error {
		clients[number] = c.target.administrator(fmt.Sprintf("load-watcher-%d", number))
		_, err := clients[number].call(ctx, &request{verb: "GET", resource: namespaces, name: "default"}, time.Now())
		return err
	})
	return clients, err
}

// watched creates what the watchers watch: the namespace and the definition of custom resources.
func (o *watcherOptions) watched(ctx context.Context, c *command) (kind, error) {
	of, err := kindOf(o.plural)
	if err != nil {
		return of, err
	}
	if of.resource == widgets {
		if err := createDefinition(ctx, c.admin); err != nil {
			return of, err
		}
	}
	if of.resource.namespaced {
		err = createNamespace(ctx, c.admin, o.namespace)
	}
	return of, err
}

func (o *watcherOptions) where(of kind) string {
	if o.cluster || !of.resource.namespaced {
		return ""
	}
	return o.namespace
}

const beating = "scale.tetrapod.dev/beat"

// runWatches holds many idle watches, and measures the delivery of one write each second.
func runWatches(ctx context.Context, set *flag.FlagSet, arguments []string) error {
	options := watcherOptions{}
	options.flags(set)
	count := set.Int("count", 1000, "number of watches")
	matching := set.Int("matching", -1, "how many of them see the writes (-1: all); the others have a label selector that does not match")
	hold := set.Duration("hold", time.Minute, "how long to hold the watches")
	rate := set.Float64("rate", 1, "writes each second")
	concurrency := set.Int("concurrency", 64, "watches that are opened at once")
	c, err := parse("watches", set, arguments)
	if err != nil {
		return err
	}
	of, err := options.watched(ctx, c)
	if err != nil {
		return err
	}
	if *matching < 0 || *matching > *count {
		*matching = *count
	}
	where := options.where(of)
	home := ""
	if of.resource.namespaced {
		home = options.namespace
	}
	if _, err := create(ctx, c.admin, of.resource, home, of.object(home, "beat", 100, nil), of.contentType); err != nil {
		return err
	}
	clients, err := options.clients(ctx, c, *count)
	if err != nil {
		return err
	}
	version, err := currentVersion(ctx, c.admin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counters, arrivals := &watchCounters{}, newBeats(c.record, *matching)
	opening := time.Now()
	err = limit(ctx, *count, *concurrency, 0, func(number int) error {
		var opened sync.WaitGroup
		opened.Add(1)
		w := &watcher{client: clients[number%len(clients)], resource: of.resource, namespace: where, version: version,
			counters: counters, opened: opened.Done, listFirst: !options.watchList}
		if of.contentType == jsonType {
			w.accept = jsonType
		}
		if number >= *matching {
			w.labels = beating + "=nobody"
		} else {
			w.seenVersion = arrivals.saw
		}
		go w.follow(ctx)
		waitFor(ctx, &opened)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	c.result.OpenSeconds = time.Since(opening).Seconds()
	announce("open", map[string]any{"count": counters.open.Load(), "seconds": c.result.OpenSeconds})

	announce("begin", nil)
	end := c.measure(ctx)
	writing, stop := context.WithCancel(ctx)
	defer stop()
	c.pacer.run(writing, *rate, 0.5, func(number int, scheduled time.Time) {
		patch := &request{verb: "PATCH", resource: of.resource, namespace: home, name: "beat", accept: of.contentType, contentType: mergePatch,
			body: fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, beating, number)}
		sent := time.Now()
		if answer, err := c.admin.call(ctx, patch, scheduled); err == nil {
			arrivals.wrote(versionOf(answer), sent, time.Now())
		}
	})
	if !sleep(ctx, *hold) {
		return ctx.Err()
	}
	stop()
	end()
	announce("end", map[string]any{"count": counters.open.Load()})
	// The events of the last writes may still be on their way.
	for deadline := time.Now().Add(c.target.timeout); time.Now().Before(deadline); {
		if missing, _ := arrivals.missing(); missing == 0 && c.pacer.running.Load() == 0 {
			break
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return ctx.Err()
		}
	}
	c.result.Delivery = map[string]summary{}
	for _, name := range []string{"from_sent", "from_answer", "last_from_sent"} {
		c.result.Delivery[name] = c.record.summaryOf("delivery." + name)
	}
	c.result.Steady.Undelivered, _ = arrivals.missing()
	return c.finish(counters)
}
