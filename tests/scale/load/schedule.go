package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// pacer starts tasks by time, not by completion: the load stays the same if the server becomes slow.
type pacer struct {
	record  *recorder
	tasks   sync.WaitGroup
	running atomic.Int64
	// most bounds the tasks of the pacer that run at once. A task beyond it is not started and counts as skipped.
	most int64
}

// momentOf returns when the task with this number is due.
func momentOf(start time.Time, perSecond float64, number int) time.Time {
	return start.Add(time.Duration(float64(number) / perSecond * float64(time.Second)))
}

// run starts tasks at a rate until the context ends. The first one is due after the offset, a share of the interval.
func (p *pacer) run(ctx context.Context, perSecond, offset float64, task func(number int, scheduled time.Time)) {
	if perSecond <= 0 {
		return
	}
	start := momentOf(time.Now(), perSecond, 0).Add(time.Duration(offset / perSecond * float64(time.Second)))
	p.tasks.Go(func() {
		for number := 0; ; number++ {
			scheduled := momentOf(start, perSecond, number)
			if !sleep(ctx, time.Until(scheduled)) {
				return
			}
			p.record.duration("lag", scheduled, time.Since(scheduled))
			p.start(func() { task(number, scheduled) })
		}
	})
}

// start runs one task beside the others.
func (p *pacer) start(task func()) {
	if p.running.Add(1) > p.most {
		p.running.Add(-1)
		p.record.count("skipped", 1)
		return
	}
	p.tasks.Go(func() {
		defer p.running.Add(-1)
		task()
	})
}

// wait returns when all tasks have ended, or after the timeout.
func (p *pacer) wait(timeout time.Duration) {
	done := make(chan struct{})
	go func() {
		p.tasks.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(timeout):
	}
}

// limit runs a task for each number below count, some at once and at most perSecond each second (0: without a limit).
// It returns the first error, after which no more tasks start.
func limit(ctx context.Context, count, concurrency int, perSecond float64, task func(number int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	start := time.Now()
	for range min(concurrency, count) {
		workers.Go(func() {
			for {
				number := int(next.Add(1) - 1)
				if number >= count || ctx.Err() != nil {
					return
				}
				if perSecond > 0 && !sleep(ctx, time.Until(momentOf(start, perSecond, number))) {
					return
				}
				if err := task(number); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}
