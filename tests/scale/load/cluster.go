package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// clusterOptions are the flags of `load cluster`.
type clusterOptions struct {
	nodes, podsPerNode int
	churn              float64
	fillRate           float64
	fillConcurrency    int
	openConcurrency    int
	duration, warmup   time.Duration
	seed               uint64
	out                string
	leasePeriod        time.Duration
	statusPeriod       time.Duration
	startDelay         time.Duration
	grace              int64
	proxies            int
	podTokens          bool
	watchList          bool
	objectWatches      bool
	customResources    int
	operatorRate       float64
	leaderPeriod       time.Duration
	cachedPeriod       time.Duration
	pagedPeriod        time.Duration
	selectorPeriod     time.Duration
	tablePeriod        time.Duration
	flood              int
	floodToken         string
	floodUser          string
	floodRequest       string
}

func (o *clusterOptions) flags(set *flag.FlagSet) {
	set.IntVar(&o.nodes, "nodes", 10, "number of nodes")
	set.IntVar(&o.podsPerNode, "pods-per-node", 30, "pods on each node")
	set.Float64Var(&o.churn, "churn", 1, "pods that are created, and deleted, each second")
	set.Float64Var(&o.fillRate, "fill-rate", 0, "pods that are created each second before the steady phase (0: as fast as possible)")
	set.IntVar(&o.fillConcurrency, "fill-concurrency", 16, "requests at once before the steady phase")
	set.IntVar(&o.openConcurrency, "open-concurrency", 8, "nodes that open their watches at once")
	set.DurationVar(&o.duration, "duration", time.Minute, "length of the measured steady phase")
	set.DurationVar(&o.warmup, "warmup", 5*time.Second, "length of the steady phase before it is measured")
	set.Uint64Var(&o.seed, "seed", 1, "seed of random choices")
	set.StringVar(&o.out, "out", "", "file for the result (JSON)")
	set.DurationVar(&o.leasePeriod, "lease-period", 10*time.Second, "period in which a kubelet renews its lease (0: never)")
	set.DurationVar(&o.statusPeriod, "node-status-period", 5*time.Minute, "period in which a kubelet patches its node's status (0: never)")
	set.DurationVar(&o.startDelay, "start-delay", 500*time.Millisecond, "mean time between two status updates of a starting pod")
	set.Int64Var(&o.grace, "grace", 30, "grace period of deletions in seconds; kubelets need none of it")
	set.IntVar(&o.proxies, "proxies", -1, "number of kube-proxies (-1: one for each node)")
	set.BoolVar(&o.podTokens, "pod-tokens", true, "kubelets ask for a token of each starting pod")
	set.BoolVar(&o.watchList, "watch-list", true, "informers get the initial objects from their watch, as client-go's default is since 1.35")
	set.BoolVar(&o.objectWatches, "object-watches", true, "kubelets watch each config map and secret of their pods")
	set.IntVar(&o.customResources, "custom-resources", -1, "number of custom resources (-1: one for each node)")
	set.Float64Var(&o.operatorRate, "operator-rate", 2, "status updates of custom resources each second")
	set.DurationVar(&o.leaderPeriod, "leader-period", 2*time.Second, "period in which controller manager and scheduler renew their leases (0: never)")
	set.DurationVar(&o.cachedPeriod, "list-cached-period", 30*time.Second, "period of a list of all pods with resourceVersion=0 (0: never)")
	set.DurationVar(&o.pagedPeriod, "list-paged-period", time.Minute, "period of a list of all pods in pages of 500 (0: never)")
	set.DurationVar(&o.selectorPeriod, "list-selector-period", 10*time.Second, "period of a list of a tenth of the pods by label (0: never)")
	set.DurationVar(&o.tablePeriod, "list-table-period", 30*time.Second, "period of a list of all pods as a Table (0: never)")
	set.IntVar(&o.flood, "flood", 0, "streams of a client that sends requests as fast as it can")
	set.StringVar(&o.floodToken, "flood-token", "", "token of that client (default: impersonated)")
	set.StringVar(&o.floodUser, "flood-user", "scale-flood", "user of that client, which gets the role view")
	set.StringVar(&o.floodRequest, "flood-request", "list", "what it sends: list (pods of a namespace), list-all (pods of all namespaces), get (a pod)")
}

// cluster is the run of `load cluster`.
type cluster struct {
	clusterOptions
	target     *target
	record     *recorder
	deliveries *deliveries
	pacer      *pacer
	whole      context.Context // of the run

	admin, controllers, scheduler, operator *client
	replicas, slices                        *client // controllers with a service account of their own
	kubelets                                []*kubelet
	apps                                    []*app
	pods                                    sync.Map
	serial                                  atomic.Int64
	watches                                 map[string]*watchCounters

	leaders    []*leader
	randomLock sync.Mutex
	randomness *rand.Rand
}

var watchGroups = []string{"kubelet", "kubelet-objects", "kube-proxy", "controller-manager", "scheduler", "operator"}

func runCluster(ctx context.Context, set *flag.FlagSet, arguments []string) error {
	c := &cluster{target: &target{}, record: newRecorder(), watches: map[string]*watchCounters{}}
	c.flags(set)
	c.target.flags(set)
	if err := set.Parse(arguments); err != nil {
		return err
	}
	if err := c.target.prepare(c.record); err != nil {
		return err
	}
	if c.nodes < 1 || c.podsPerNode < 1 {
		return errors.New("--nodes and --pods-per-node are at least 1")
	}
	if c.proxies < 0 {
		c.proxies = c.nodes
	}
	if c.customResources < 0 {
		c.customResources = c.nodes
	}
	c.randomness = rand.New(rand.NewPCG(c.seed, 0))
	c.deliveries = newDeliveries(c.record)
	c.pacer = &pacer{record: c.record, most: 100_000}
	for _, group := range watchGroups {
		c.watches[group] = &watchCounters{}
	}
	c.admin = c.target.administrator("load-administrator")
	c.controllers = c.target.user("kube-controller-manager/v1.37.1", "system:kube-controller-manager").plain()
	c.replicas = c.target.user("kube-controller-manager/v1.37.1", "system:serviceaccount:kube-system:replicaset-controller").plain()
	c.slices = c.target.user("kube-controller-manager/v1.37.1", "system:serviceaccount:kube-system:endpointslice-controller").plain()
	c.scheduler = c.target.user("kube-scheduler/v1.37.1", "system:kube-scheduler").plain()
	c.operator = c.target.administrator("load-operator")

	result := newResult("cluster", set)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.whole = ctx
	begun := time.Now()
	if err := c.fill(ctx); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	result.Fill = &fillResult{Seconds: time.Since(begun).Seconds(), Pods: c.nodes * c.podsPerNode, Nodes: c.nodes,
		Services: len(c.apps), CustomResources: c.customResources}
	result.Fill.Requests, result.Fill.Failures = c.record.totals()
	announce("filled", map[string]any{"seconds": result.Fill.Seconds, "pods": result.Fill.Pods, "nodes": c.nodes})

	opening := time.Now()
	if err := c.open(ctx); err != nil {
		return fmt.Errorf("opening watches: %w", err)
	}
	result.OpenSeconds = time.Since(opening).Seconds()
	announce("watching", map[string]any{"seconds": result.OpenSeconds, "watches": c.openWatches()})

	steady, stop := context.WithCancel(ctx)
	defer stop()
	c.steady(steady)
	go c.progress(steady)
	if !sleep(ctx, c.warmup) {
		return ctx.Err()
	}
	c.record.begin()
	announce("begin", map[string]any{"watches": c.openWatches()})
	result.begin()
	flood := c.startFlood(steady)
	if !sleep(ctx, c.duration) {
		return ctx.Err()
	}
	c.record.end()
	stop()
	announce("end", map[string]any{"watches": c.openWatches()})
	result.end()
	c.pacer.wait(c.target.timeout)
	c.deliveries.sweep(0)
	c.complete(result, flood)
	return result.write(c.out)
}

// steady starts the requests of all components.
func (c *cluster) steady(ctx context.Context) {
	// Requests that were due before the end of the phase still end, so they do not have its context.
	requests := context.WithoutCancel(ctx)
	every := func(period time.Duration) float64 {
		if period <= 0 {
			return 0
		}
		return 1 / period.Seconds()
	}
	nodes := float64(c.nodes)
	c.pacer.run(ctx, nodes*every(c.leasePeriod), 0.1, func(number int, scheduled time.Time) {
		c.kubelets[number%c.nodes].renew(requests, scheduled)
	})
	c.pacer.run(ctx, nodes*every(c.statusPeriod), 0.2, func(number int, scheduled time.Time) {
		c.kubelets[number%c.nodes].heartbeat(requests, scheduled)
	})
	c.pacer.run(ctx, c.churn, 0.3, func(_ int, scheduled time.Time) { c.createPod(requests, scheduled) })
	c.pacer.run(ctx, c.churn, 0.8, func(_ int, scheduled time.Time) { c.deletePod(requests, scheduled) })
	c.runControllers(ctx, requests, every(c.leaderPeriod))
	c.pacer.run(ctx, c.operatorRate, 0.5, func(number int, scheduled time.Time) { c.updateWidget(requests, number, scheduled) })
	c.runLists(ctx, requests, every)
	go func() {
		for sleep(ctx, 10*time.Second) {
			c.deliveries.sweep(2 * c.target.timeout)
		}
	}()
}

// progress writes a line to stderr every ten seconds.
func (c *cluster) progress(ctx context.Context) {
	for sleep(ctx, 10*time.Second) {
		requests, failures := c.record.totals()
		fmt.Fprintf(os.Stderr, "load: %d requests, %d failed, %d running, %d watches\n", requests, failures, c.pacer.running.Load(), c.openWatches())
	}
}

func (c *cluster) openWatches() int64 {
	var count int64
	for _, counters := range c.watches {
		count += counters.open.Load()
	}
	return count
}

func (c *cluster) random(below int) int {
	c.randomLock.Lock()
	defer c.randomLock.Unlock()
	return c.randomness.IntN(below)
}
