package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	podsPerNamespace = 100
	podsPerService   = 10
	terminated       = 3 // the stage of podStatus after the three of a start
	rootCertificates = "kube-root-ca.crt"
	nodeLeases       = "kube-node-lease"
)

// app is a service with the objects around it: deployment, replica set, endpoint slice, config map, secret and pods.
type app struct {
	number          int
	namespace, name string

	lock              sync.Mutex // held during the writes of the endpoint slice and the replica set
	ready             []*pod
	sliceVersion      string
	replicaSetVersion string
	replicaSetUID     string

	names atomic.Int64
}

func newApp(number int) *app {
	perNamespace := podsPerNamespace / podsPerService
	return &app{number: number, namespace: fmt.Sprintf("scale-%d", number/perNamespace), name: fmt.Sprintf("app-%d", number)}
}

// add puts a pod among the ready ones.
func (a *app) add(p *pod) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.ready = append(a.ready, p)
}

// pod is what the generator knows of a pod.
type pod struct {
	app                  *app
	kubelet              *kubelet // of the node that the scheduler takes
	namespace, name      string
	node                 string
	address, hostAddress string
	uid                  string // set before the pod is bound

	created time.Time // when its creation was sent

	lock                   sync.Mutex
	bindSent, bindAnswered time.Time

	bound, started, ready, removed, finished atomic.Bool
}

func (c *cluster) newPod(a *app) *pod {
	serial := c.serial.Add(1)
	host := c.kubelets[c.random(len(c.kubelets))]
	p := &pod{app: a, namespace: a.namespace, name: fmt.Sprintf("%s-%d", a.name, a.names.Add(1)), kubelet: host, node: host.name, hostAddress: host.address}
	p.address = fmt.Sprintf("10.%d.%d.%d", serial>>16&127, serial>>8&255, serial&255)
	c.pods.Store(key(p.namespace, p.name), p)
	return p
}

func key(namespace, name string) string { return namespace + "/" + name }

func (c *cluster) podOf(m meta) *pod {
	if value, ok := c.pods.Load(string(m.namespace) + "/" + string(m.name)); ok {
		return value.(*pod)
	}
	return nil
}

// take removes a random pod from the ready ones of its service, or returns nil if no ready pod was found.
func (c *cluster) take() *pod {
	for range 100 {
		a := c.apps[c.random(len(c.apps))]
		a.lock.Lock()
		if len(a.ready) > 0 {
			index := c.random(len(a.ready))
			p := a.ready[index]
			a.ready = slices.Delete(a.ready, index, index+1)
			a.lock.Unlock()
			return p
		}
		a.lock.Unlock()
	}
	return nil
}
