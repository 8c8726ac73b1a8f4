package main

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"
)

// kubelet is the client of one node.
type kubelet struct {
	cluster       *cluster
	name, address string
	client        *client

	leaseLock    sync.Mutex
	leaseVersion string

	objectsLock sync.Mutex
	objects     map[object]*objectWatch
}

// object is a config map or secret that pods of the node use.
type object struct {
	resource        resource
	namespace, name string
}

type objectWatch struct {
	users int
	stop  context.CancelFunc
}

func newKubelet(c *cluster, number int) *kubelet {
	name := fmt.Sprintf("node-%d", number)
	return &kubelet{
		cluster: c, name: name, address: nodeAddress(number), objects: map[object]*objectWatch{},
		client: c.target.user("kubelet/v1.37.1", "system:node:"+name, "system:nodes", "system:authenticated"),
	}
}

// open starts the watches of the kubelet and waits until they have their initial objects.
func (k *kubelet) open(ctx context.Context, mounted []*pod) {
	var opened sync.WaitGroup
	counters := k.cluster.watches["kubelet"]
	watchers := []*watcher{
		{resource: pods, fields: "spec.nodeName=" + k.name, seen: k.sawPod},
		{resource: nodes, name: k.name},
		{resource: services},
		{resource: runtimeClasses},
		{resource: csiDrivers},
	}
	for _, w := range watchers {
		w.client, w.counters, w.listFirst, w.opened = k.client, counters, !k.cluster.watchList, opened.Done
		opened.Add(1)
		go w.follow(ctx)
	}
	for _, p := range mounted {
		k.mount(ctx, p, &opened)
	}
	waitFor(ctx, &opened)
}

// mount watches the objects that a pod uses.
func (k *kubelet) mount(ctx context.Context, p *pod, opened *sync.WaitGroup) {
	if !k.cluster.objectWatches {
		return
	}
	k.objectsLock.Lock()
	defer k.objectsLock.Unlock()
	for _, one := range objectsOf(p) {
		if known := k.objects[one]; known != nil {
			known.users++
			continue
		}
		watching, stop := context.WithCancel(ctx)
		k.objects[one] = &objectWatch{1, stop}
		w := &watcher{client: k.client, resource: one.resource, namespace: one.namespace, name: one.name,
			counters: k.cluster.watches["kubelet-objects"], listFirst: !k.cluster.watchList}
		if opened != nil {
			opened.Add(1)
			w.opened = opened.Done
		}
		go w.follow(watching)
	}
}

// unmount ends the watches of objects that no other pod of the node uses.
func (k *kubelet) unmount(p *pod) {
	if !k.cluster.objectWatches {
		return
	}
	k.objectsLock.Lock()
	defer k.objectsLock.Unlock()
	for _, one := range objectsOf(p) {
		if known := k.objects[one]; known != nil {
			if known.users--; known.users == 0 {
				known.stop()
				delete(k.objects, one)
			}
		}
	}
}

func objectsOf(p *pod) []object {
	return []object{
		{configMaps, p.namespace, rootCertificates},
		{configMaps, p.namespace, p.app.name},
		{secrets, p.namespace, p.app.name},
	}
}

// sawPod reacts to an event of a pod of the node.
func (k *kubelet) sawPod(kind string, object []byte, arrived time.Time) {
	about := metaOf(object)
	p := k.cluster.podOf(about)
	if p == nil || kind == "DELETED" {
		return
	}
	if p.started.CompareAndSwap(false, true) {
		p.lock.Lock()
		sent, answered := p.bindSent, p.bindAnswered
		p.lock.Unlock()
		recordDelivery(k.cluster.record, byKubelet, sent, answered, arrived)
		k.cluster.pacer.start(func() { k.startPod(p, arrived) })
		return
	}
	k.cluster.deliveries.saw(string(about.resourceVersion), byKubelet, arrived)
	if about.deleting && p.finished.CompareAndSwap(false, true) {
		k.cluster.pacer.start(func() { k.finishPod(p) })
	}
}

// startPod does what a kubelet does for a new pod until it is ready.
func (k *kubelet) startPod(p *pod, now time.Time) {
	c, ctx := k.cluster, k.cluster.whole
	k.mount(ctx, p, nil)
	if c.podTokens {
		token := &request{verb: "POST", resource: serviceAccounts, namespace: p.namespace, name: "default", subresource: "token", body: tokenRequest(p)}
		for attempt := 0; attempt < 10; attempt++ {
			_, err := k.client.call(ctx, token, now)
			if !hasCode(err, 403) {
				break
			}
			// The node authorizer has not seen yet that the pod is bound. The kubelet tries again as well.
			if !sleep(ctx, 100*time.Millisecond) {
				return
			}
			now = time.Now()
		}
	}
	for stage := range terminated {
		if stage > 0 {
			if !sleep(ctx, c.startDelay/2+time.Duration(c.random(int(c.startDelay)+1))) {
				return
			}
		}
		var then func(time.Time)
		if stage == terminated-1 {
			then = func(arrived time.Time) { c.becameReady(p, arrived) }
		}
		if !k.patchStatus(ctx, p, stage, then) {
			c.record.count("pods_lost", 1)
			return
		}
		if stage == 1 {
			event := &request{verb: "POST", resource: coreEvents, namespace: p.namespace, body: startedEvent(p)}
			c.pacer.start(func() { _, _ = k.client.call(ctx, event, time.Now()) })
		}
	}
}

func statusPatch(p *pod, stage int) *request {
	return &request{verb: "PATCH", resource: pods, namespace: p.namespace, name: p.name, subresource: "status",
		body: podStatus(p, stage), contentType: strategicPatch}
}

// patchStatus reads the pod and patches its status, as the kubelet's status manager does.
func (k *kubelet) patchStatus(ctx context.Context, p *pod, stage int, then func(time.Time)) bool {
	read := &request{verb: "GET", resource: pods, namespace: p.namespace, name: p.name, discard: true}
	if _, err := k.client.call(ctx, read, time.Now()); err != nil {
		return false
	}
	sent := time.Now()
	answer, err := k.client.call(ctx, statusPatch(p, stage), sent)
	if err != nil {
		return false
	}
	k.cluster.deliveries.wrote(versionOf(answer), sent, true, then)
	return true
}

// finishPod ends a pod that is being deleted.
func (k *kubelet) finishPod(p *pod) {
	ctx := k.cluster.whole
	k.patchStatus(ctx, p, terminated, nil)
	final := &request{verb: "DELETE", resource: pods, namespace: p.namespace, name: p.name, body: deleteOptions(0, p.uid)}
	if _, err := k.client.call(ctx, final, time.Now()); err == nil {
		k.cluster.record.count("pods_deleted", 1)
	}
	k.unmount(p)
	k.cluster.pods.Delete(key(p.namespace, p.name))
}

// renew updates the lease of the node.
func (k *kubelet) renew(ctx context.Context, scheduled time.Time) {
	k.leaseLock.Lock()
	defer k.leaseLock.Unlock()
	k.leaseVersion = renewLease(ctx, k.client, nodeLeases, k.name, k.leaseVersion, 40, scheduled)
}

// renewLease updates a lease and returns its new version. After an error it reads the lease, as client-go does.
func renewLease(ctx context.Context, by *client, namespace, name, version string, seconds int32, scheduled time.Time) string {
	ask := &request{verb: "PUT", resource: leases, namespace: namespace, name: name, body: leaseObject(namespace, name, version, seconds)}
	answer, err := by.do(ctx, ask, scheduled)
	if err == nil {
		return versionOf(answer)
	}
	answer, err = by.do(ctx, &request{verb: "GET", resource: leases, namespace: namespace, name: name}, time.Now())
	if err != nil {
		return version
	}
	return versionOf(answer)
}

// heartbeat reads the node from the cache and patches its conditions.
func (k *kubelet) heartbeat(ctx context.Context, scheduled time.Time) {
	read := &request{verb: "GET", resource: nodes, name: k.name, query: url.Values{"resourceVersion": {"0"}}, discard: true}
	if _, err := k.client.call(ctx, read, scheduled); err != nil {
		return
	}
	patch := &request{verb: "PATCH", resource: nodes, name: k.name, subresource: "status", body: nodeHeartbeat(), contentType: strategicPatch}
	_, _ = k.client.call(ctx, patch, time.Now())
}

// waitFor waits for a group or for the end of the context.
func waitFor(ctx context.Context, group *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
