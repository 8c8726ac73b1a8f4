package main

import (
	"context"
	"flag"
	"sync"
	"sync/atomic"
	"time"
)

// roundResult is one loss of all watches until all watch again.
type roundResult struct {
	Seconds  float64 `json:"seconds"`
	Relists  int64   `json:"relists"`
	Gone     int64   `json:"gone"`
	Requests []row   `json:"requests"`
}

// runStorm runs many informers. When they lose their watches, because the server restarts, it measures until all of
// them watch again.
func runStorm(ctx context.Context, set *flag.FlagSet, arguments []string) error {
	options := watcherOptions{}
	options.flags(set)
	count := set.Int("watchers", 2000, "number of informers")
	rounds := set.Int("rounds", 1, "end after this number of losses")
	relist := set.Bool("relist", false, "informers begin with the initial objects again after each loss, as after 410")
	concurrency := set.Int("concurrency", 64, "informers that start at once")
	c, err := parse("storm", set, arguments)
	if err != nil {
		return err
	}
	of, err := options.watched(ctx, c)
	if err != nil {
		return err
	}
	clients, err := options.clients(ctx, c, *count)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counters := &watchCounters{}
	var watching atomic.Int64
	opening := time.Now()
	err = limit(ctx, *count, *concurrency, 0, func(number int) error {
		var opened sync.WaitGroup
		opened.Add(1)
		w := &watcher{client: clients[number%len(clients)], resource: of.resource, namespace: options.where(of), counters: counters,
			opened: opened.Done, listFirst: !options.watchList, relist: *relist, watching: &watching}
		if of.contentType == jsonType {
			w.accept = jsonType
		}
		go w.follow(ctx)
		waitFor(ctx, &opened)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	c.result.OpenSeconds = time.Since(opening).Seconds()
	announce("watching", map[string]any{"count": watching.Load(), "seconds": c.result.OpenSeconds})
	end := c.measure(ctx)
	for range *rounds {
		apart := newRecorder()
		apart.begin()
		for _, one := range clients {
			one.apart.Store(apart)
		}
		relists, gone := counters.relists.Load(), counters.gone.Load()
		if err := until(ctx, func() bool { return 2*watching.Load() <= int64(*count) }); err != nil {
			return err
		}
		lost := time.Now()
		announce("lost", nil)
		if err := until(ctx, func() bool { return watching.Load() == int64(*count) }); err != nil {
			return err
		}
		round := roundResult{time.Since(lost).Seconds(), counters.relists.Load() - relists, counters.gone.Load() - gone, apart.rows()}
		c.result.Rounds = append(c.result.Rounds, round)
		announce("recovered", map[string]any{"seconds": round.Seconds, "relists": round.Relists, "gone": round.Gone, "errors": errorsOf(round.Requests)})
	}
	end()
	return c.finish(counters)
}

// until waits for a condition, asked for every 20 ms.
func until(ctx context.Context, condition func() bool) error {
	for !condition() {
		if !sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// errorsOf adds up the errors of all rows.
func errorsOf(rows []row) map[string]int64 {
	sum := map[string]int64{}
	for _, one := range rows {
		for class, count := range one.Errors {
			sum[class] += count
		}
	}
	return sum
}
