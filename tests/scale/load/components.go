package main

import (
	"context"
	"sync"
	"time"
)

// The collections that informers of the components follow.
var (
	controllerResources = []resource{
		nodes, replicaSets, deployments, endpointSlices, namespaces, services, serviceAccounts, configMaps, secrets,
		{"batch", "v1", "jobs", true}, {"batch", "v1", "cronjobs", true}, {"apps", "v1", "statefulsets", true}, {"apps", "v1", "daemonsets", true},
		{"", "v1", "persistentvolumes", false}, {"", "v1", "persistentvolumeclaims", true},
		{"", "v1", "replicationcontrollers", true}, {"", "v1", "resourcequotas", true},
		{"policy", "v1", "poddisruptionbudgets", true}, {"autoscaling", "v2", "horizontalpodautoscalers", true},
		{"certificates.k8s.io", "v1", "certificatesigningrequests", false}, csiDrivers, {"storage.k8s.io", "v1", "csinodes", false},
		{"storage.k8s.io", "v1", "storageclasses", false}, {"storage.k8s.io", "v1", "volumeattachments", false},
	}
	// The garbage collector has informers of metadata for the kinds that have no other informer.
	metadataResources = []resource{
		leases, runtimeClasses, {"apps", "v1", "controllerrevisions", true}, {"", "v1", "podtemplates", true}, {"", "v1", "endpoints", true},
		{"", "v1", "limitranges", true}, {"networking.k8s.io", "v1", "ingresses", true}, {"networking.k8s.io", "v1", "networkpolicies", true},
		{"rbac.authorization.k8s.io", "v1", "roles", true}, {"rbac.authorization.k8s.io", "v1", "rolebindings", true},
		{"rbac.authorization.k8s.io", "v1", "clusterroles", false}, {"rbac.authorization.k8s.io", "v1", "clusterrolebindings", false},
		{"scheduling.k8s.io", "v1", "priorityclasses", false}, definitions,
	}
	schedulerResources = []resource{
		nodes, namespaces, services, replicaSets, {"apps", "v1", "statefulsets", true}, {"", "v1", "replicationcontrollers", true},
		{"", "v1", "persistentvolumes", false}, {"", "v1", "persistentvolumeclaims", true}, {"policy", "v1", "poddisruptionbudgets", true},
		{"storage.k8s.io", "v1", "storageclasses", false}, {"storage.k8s.io", "v1", "csinodes", false}, csiDrivers,
		{"storage.k8s.io", "v1", "csistoragecapacities", true},
	}
)

// The selectors of kube-proxy. Upstream: cmd/kube-proxy/app/server.go, Run.
const (
	proxyServices = "!service.kubernetes.io/service-proxy-name"
	proxySlices   = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name"
)

// open starts all watches and waits for their initial objects.
func (c *cluster) open(ctx context.Context) error {
	c.openAll(ctx, c.controllers, "controller-manager", c.controllerWatchers())
	schedulers := []*watcher{{resource: pods, fields: "status.phase!=Succeeded,status.phase!=Failed", seen: c.scheduleSeen}}
	for _, one := range schedulerResources {
		schedulers = append(schedulers, &watcher{resource: one})
	}
	c.openAll(ctx, c.scheduler, "scheduler", schedulers)
	if c.customResources > 0 {
		c.openAll(ctx, c.operator, "operator", []*watcher{{resource: widgets, accept: jsonType}})
	}
	mounted := map[*kubelet][]*pod{}
	c.pods.Range(func(_, value any) bool {
		p := value.(*pod)
		mounted[p.kubelet] = append(mounted[p.kubelet], p)
		return true
	})
	err := limit(ctx, len(c.kubelets), c.openConcurrency, 0, func(number int) error {
		k := c.kubelets[number]
		k.open(ctx, mounted[k])
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	return limit(ctx, c.proxies, c.openConcurrency, 0, func(number int) error {
		proxy := c.target.user("kube-proxy/v1.37.1", "system:kube-proxy")
		c.openAll(ctx, proxy, "kube-proxy", []*watcher{
			{resource: services, labels: proxyServices, fields: "spec.clusterIP!=None"},
			{resource: endpointSlices, labels: proxySlices},
			{resource: nodes, name: c.kubelets[number%c.nodes].name},
			{resource: resource{"networking.k8s.io", "v1", "servicecidrs", false}},
		})
		return ctx.Err()
	})
}

func (c *cluster) controllerWatchers() []*watcher {
	watchers := []*watcher{{resource: pods, seen: c.controllerSaw}}
	for _, one := range controllerResources {
		watchers = append(watchers, &watcher{resource: one})
	}
	for _, one := range metadataResources {
		watchers = append(watchers, &watcher{resource: one, accept: acceptMetadata})
	}
	if c.customResources > 0 {
		watchers = append(watchers, &watcher{resource: widgets, accept: acceptMetadata})
	}
	return watchers
}

// openAll starts watches of one client and waits for their initial objects.
func (c *cluster) openAll(ctx context.Context, by *client, group string, watchers []*watcher) {
	var opened sync.WaitGroup
	for _, w := range watchers {
		w.client, w.counters, w.listFirst, w.opened = by, c.watches[group], !c.watchList, opened.Done
		opened.Add(1)
		go w.follow(ctx)
	}
	waitFor(ctx, &opened)
}

// controllerSaw is the pod informer of the controller manager: the watch of the whole cluster.
func (c *cluster) controllerSaw(kind string, object []byte, arrived time.Time) {
	about := metaOf(object)
	p := c.podOf(about)
	if p == nil || kind == "DELETED" {
		return
	}
	c.deliveries.saw(string(about.resourceVersion), byCluster, arrived)
	if about.deleting && p.removed.CompareAndSwap(false, true) {
		c.pacer.start(func() { c.updateApp(p.app, nil) })
	}
}

// becameReady is called when the watch of the whole cluster shows that a pod is ready.
func (c *cluster) becameReady(p *pod, arrived time.Time) {
	if !p.ready.CompareAndSwap(false, true) {
		return
	}
	c.record.duration("pod_startup", p.created, arrived.Sub(p.created))
	c.pacer.start(func() { c.updateApp(p.app, p) })
}

// updateApp writes the endpoint slice and the status of the replica set after a pod became ready or is being deleted.
func (c *cluster) updateApp(a *app, added *pod) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if added != nil {
		a.ready = append(a.ready, added)
	}
	slice := &request{verb: "PUT", resource: endpointSlices, namespace: a.namespace, name: a.name, body: a.endpointSlice()}
	if answer, err := c.slices.call(c.whole, slice, time.Now()); err == nil {
		a.sliceVersion = versionOf(answer)
	}
	status := &request{verb: "PUT", resource: replicaSets, namespace: a.namespace, name: a.name, subresource: "status", body: a.replicaSetStatus(len(a.ready))}
	if answer, err := c.replicas.call(c.whole, status, time.Now()); err == nil {
		a.replicaSetVersion = versionOf(answer)
	}
}

// scheduleSeen is the pod informer of the scheduler.
func (c *cluster) scheduleSeen(kind string, object []byte, arrived time.Time) {
	if kind == "DELETED" {
		return
	}
	about := metaOf(object)
	p := c.podOf(about)
	if p == nil || about.deleting || !p.bound.CompareAndSwap(false, true) {
		return
	}
	p.uid = string(about.uid)
	c.pacer.start(func() { c.bind(p, arrived) })
}

// bind assigns a pod to its node.
func (c *cluster) bind(p *pod, arrived time.Time) {
	p.lock.Lock()
	p.bindSent = time.Now()
	p.lock.Unlock()
	ask := &request{verb: "POST", resource: pods, namespace: p.namespace, name: p.name, subresource: "binding", body: bindingObject(p)}
	if _, err := c.scheduler.call(c.whole, ask, arrived); err != nil {
		c.record.count("pods_lost", 1)
		return
	}
	p.lock.Lock()
	p.bindAnswered = time.Now()
	p.lock.Unlock()
	event := &request{verb: "POST", resource: newEvents, namespace: p.namespace, body: scheduledEvent(p)}
	_, _ = c.scheduler.call(c.whole, event, time.Now())
}

// createPod creates a pod of a random service, as the controller of its replica set does.
func (c *cluster) createPod(ctx context.Context, scheduled time.Time) {
	p := c.newPod(c.apps[c.random(len(c.apps))])
	p.created = time.Now()
	ask := &request{verb: "POST", resource: pods, namespace: p.namespace, body: podObject(p)}
	answer, err := c.replicas.call(ctx, ask, scheduled)
	if err != nil {
		c.record.count("pods_lost", 1)
		return
	}
	c.deliveries.wrote(versionOf(answer), p.created, false, nil)
	c.record.count("pods_created", 1)
}

// deletePod deletes a ready pod. Its kubelet sees that and ends it.
func (c *cluster) deletePod(ctx context.Context, scheduled time.Time) {
	p := c.take()
	if p == nil {
		c.record.count("skipped", 1)
		return
	}
	ask := &request{verb: "DELETE", resource: pods, namespace: p.namespace, name: p.name, body: deleteOptions(c.grace, "")}
	sent := time.Now()
	if answer, err := c.replicas.call(ctx, ask, scheduled); err == nil {
		c.deliveries.wrote(versionOf(answer), sent, true, nil)
	}
}

// leader is a lease of leader election.
type leader struct {
	client        *client
	name, version string
	lock          sync.Mutex
}

func (c *cluster) fillLeaders(ctx context.Context) error {
	c.leaders = []*leader{{client: c.controllers, name: "kube-controller-manager"}, {client: c.scheduler, name: "kube-scheduler"}}
	if _, err := create(ctx, c.admin, namespaces, "", namespaceObject("kube-system"), ""); err != nil {
		return err
	}
	for _, one := range c.leaders {
		answer, err := create(ctx, c.admin, leases, "kube-system", leaseObject("kube-system", one.name, "", 15), "")
		if err != nil {
			return err
		}
		one.version = versionOf(answer)
	}
	return nil
}

// runControllers renews the leases of the controller manager and the scheduler.
func (c *cluster) runControllers(ctx, requests context.Context, perSecond float64) {
	for _, one := range c.leaders {
		c.pacer.run(ctx, perSecond, 0.4, func(_ int, scheduled time.Time) {
			one.lock.Lock()
			defer one.lock.Unlock()
			one.version = renewLease(requests, one.client, "kube-system", one.name, one.version, 15, scheduled)
		})
	}
}

// updateWidget patches the status of a custom resource.
func (c *cluster) updateWidget(ctx context.Context, number int, scheduled time.Time) {
	if c.customResources == 0 {
		return
	}
	namespace, name := c.widget(number % c.customResources)
	ask := &request{verb: "PATCH", resource: widgets, namespace: namespace, name: name, subresource: "status", accept: jsonType,
		body: widgetStatus(number), contentType: mergePatch}
	_, _ = c.operator.call(ctx, ask, scheduled)
}
