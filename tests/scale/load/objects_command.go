package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// objectsResult is what `load objects` and `load drain` report.
type objectsResult struct {
	Count   int64   `json:"count"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"per_second"`
}

// runObjects creates many small objects as fast as it can.
func runObjects(ctx context.Context, set *flag.FlagSet, arguments []string) error {
	count := set.Int("count", 1000, "number of objects")
	plural := set.String("kind", "configmaps", "kind of the objects (plural)")
	spread := set.Int("namespaces", 10, "number of namespaces")
	prefix := set.String("prefix", "objects", "names of the namespaces begin with this")
	first := set.Int("first", 0, "number of the first object, for more objects after an earlier run")
	concurrency := set.Int("concurrency", 16, "requests at once")
	connections := set.Int("connections", 4, "TLS connections")
	size := set.Int("size", 100, "bytes of data in each object")
	c, err := parse("objects", set, arguments)
	if err != nil {
		return err
	}
	of, err := kindOf(*plural)
	if err != nil {
		return err
	}
	if of.resource == widgets {
		if err := createDefinition(ctx, c.admin); err != nil {
			return err
		}
	}
	namespace := func(number int) string { return fmt.Sprintf("%s-%d", *prefix, number%*spread) }
	if of.resource.namespaced {
		err := limit(ctx, *spread, *concurrency, 0, func(number int) error { return createNamespace(ctx, c.admin, namespace(number)) })
		if err != nil {
			return err
		}
	}
	writers := []*client{}
	for range *connections {
		writers = append(writers, c.target.administrator("load-writer"))
	}
	announce("begin", nil)
	end := c.measure(ctx)
	begun := time.Now()
	var created atomic.Int64
	err = limit(ctx, *count, *concurrency, 0, func(number int) error {
		number += *first
		where := ""
		if of.resource.namespaced {
			where = namespace(number)
		}
		body := of.object(where, nameOf(number), *size, map[string]string{"app": "objects"})
		_, err := create(ctx, writers[number%len(writers)], of.resource, where, body, of.contentType)
		if done := created.Add(1); done%10_000 == 0 {
			fmt.Fprintf(os.Stderr, "load: %d of %d objects\n", done, *count)
		}
		return err
	})
	seconds := time.Since(begun).Seconds()
	end()
	if err != nil {
		return err
	}
	c.result.Objects = &objectsResult{created.Load(), seconds, float64(created.Load()) / seconds}
	announce("end", map[string]any{"count": created.Load(), "seconds": seconds})
	return c.finish(nil)
}
