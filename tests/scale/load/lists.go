package main

import (
	"context"
	"net/url"
	"time"
)

// runLists starts the periodic lists of pods in the whole cluster. Each has a user agent and connections of its own.
func (c *cluster) runLists(ctx, requests context.Context, every func(time.Duration) float64) {
	cached, paged := c.target.administrator("load-agent"), c.target.administrator("load-inventory")
	selecting, table := c.target.administrator("load-selector"), c.target.administrator("load-kubectl")
	lists := []struct {
		name   string
		period time.Duration
		run    func(scheduled time.Time) error
	}{
		{"cached", c.cachedPeriod, func(scheduled time.Time) error {
			return listPods(requests, cached, url.Values{"resourceVersion": {"0"}}, "", scheduled)
		}},
		{"paged", c.pagedPeriod, func(scheduled time.Time) error { return listPages(requests, paged, scheduled) }},
		{"selector", c.selectorPeriod, func(scheduled time.Time) error {
			return listPods(requests, selecting, url.Values{"labelSelector": {"tier=tier-3"}}, "", scheduled)
		}},
		{"table", c.tablePeriod, func(scheduled time.Time) error {
			return listPods(requests, table, nil, acceptTable, scheduled)
		}},
	}
	for _, list := range lists {
		c.pacer.run(ctx, every(list.period), 0.5, func(_ int, scheduled time.Time) {
			if list.run(scheduled) == nil {
				c.record.duration("list."+list.name, scheduled, time.Since(scheduled))
			}
		})
	}
}

func listPods(ctx context.Context, by *client, query url.Values, accept string, scheduled time.Time) error {
	_, err := by.do(ctx, &request{verb: "LIST", resource: pods, query: query, accept: accept, discard: true}, scheduled)
	return err
}

// listPages lists all pods in pages of 500. The pages after the first are due at once.
func listPages(ctx context.Context, by *client, scheduled time.Time) error {
	query := url.Values{"limit": {"500"}}
	for {
		answer, err := by.do(ctx, &request{verb: "LIST", resource: pods, query: query}, scheduled)
		if err != nil {
			return err
		}
		_, next := listOf(answer)
		if next == "" {
			return nil
		}
		query = url.Values{"limit": {"500"}, "continue": {next}}
		scheduled = time.Now()
	}
}
