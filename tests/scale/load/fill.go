package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// fill creates the objects of the cluster.
func (c *cluster) fill(ctx context.Context) error {
	count := c.nodes * c.podsPerNode
	for number := range (count + podsPerService - 1) / podsPerService {
		c.apps = append(c.apps, newApp(number))
	}
	for number := range c.nodes {
		c.kubelets = append(c.kubelets, newKubelet(c, number))
	}
	if c.customResources > 0 {
		if err := createDefinition(ctx, c.admin); err != nil {
			return err
		}
	}
	steps := []func(context.Context) error{c.fillNamespaces, c.fillNodes, c.fillApps, c.fillWidgets, c.fillLeaders, c.fillFlood}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	var done atomic.Int64
	err := limit(ctx, count, c.fillConcurrency, c.fillRate, func(number int) error {
		if created := done.Add(1); created%5000 == 0 {
			fmt.Fprintf(os.Stderr, "load: %d of %d pods\n", created, count)
		}
		return c.fillPod(ctx, c.apps[number/podsPerService])
	})
	if err != nil {
		return err
	}
	return limit(ctx, len(c.apps), c.fillConcurrency, 0, func(number int) error {
		a := c.apps[number]
		answer, err := create(ctx, c.slices, endpointSlices, a.namespace, a.endpointSlice(), "")
		a.sliceVersion = versionOf(answer)
		return err
	})
}

func (c *cluster) fillNamespaces(ctx context.Context) error {
	perNamespace := podsPerNamespace / podsPerService
	if _, err := create(ctx, c.admin, namespaces, "", namespaceObject(nodeLeases), ""); err != nil {
		return err
	}
	return limit(ctx, (len(c.apps)+perNamespace-1)/perNamespace, c.fillConcurrency, 0, func(number int) error {
		return createNamespace(ctx, c.admin, c.apps[number*perNamespace].namespace)
	})
}

func (c *cluster) fillNodes(ctx context.Context) error {
	return limit(ctx, c.nodes, c.fillConcurrency, 0, func(number int) error {
		k := c.kubelets[number]
		if _, err := create(ctx, k.client, nodes, "", nodeObject(k.name, number), ""); err != nil {
			return err
		}
		answer, err := create(ctx, k.client, leases, nodeLeases, leaseObject(nodeLeases, k.name, "", 40), "")
		k.leaseVersion = versionOf(answer)
		return err
	})
}

func (c *cluster) fillApps(ctx context.Context) error {
	return limit(ctx, len(c.apps), c.fillConcurrency, 0, func(number int) error {
		a := c.apps[number]
		objects := []struct {
			to   resource
			body []byte
		}{{services, a.service()}, {configMaps, a.configMap()}, {secrets, a.secret()}, {deployments, a.deployment()}}
		for _, object := range objects {
			if _, err := create(ctx, c.admin, object.to, a.namespace, object.body, ""); err != nil {
				return err
			}
		}
		answer, err := create(ctx, c.admin, replicaSets, a.namespace, a.replicaSet(), "")
		if object, ok := unwrap(answer); ok {
			a.replicaSetUID = string(metaOf(object).uid)
			a.replicaSetVersion = string(metaOf(object).resourceVersion)
		}
		return err
	})
}

func (c *cluster) widget(number int) (namespace, name string) {
	return c.apps[number%len(c.apps)].namespace, fmt.Sprintf("widget-%d", number)
}

func (c *cluster) fillWidgets(ctx context.Context) error {
	return limit(ctx, c.customResources, c.fillConcurrency, 0, func(number int) error {
		namespace, name := c.widget(number)
		_, err := create(ctx, c.operator, widgets, namespace, widgetObject(namespace, name), jsonType)
		return err
	})
}

// fillPod creates a pod, binds it and sends the three status updates of its kubelet.
func (c *cluster) fillPod(ctx context.Context, a *app) error {
	p := c.newPod(a)
	p.bound.Store(true)
	p.started.Store(true)
	p.ready.Store(true)
	answer, err := create(ctx, c.replicas, pods, p.namespace, podObject(p), "")
	if err != nil {
		return err
	}
	object, _ := unwrap(answer)
	p.uid = string(metaOf(object).uid)
	bind := &request{verb: "POST", resource: pods, namespace: p.namespace, name: p.name, subresource: "binding", body: bindingObject(p)}
	if _, err := c.scheduler.call(ctx, bind, time.Now()); err != nil {
		return fmt.Errorf("binding of %s: %w", p.name, err)
	}
	for stage := range terminated {
		if _, err := p.kubelet.client.call(ctx, statusPatch(p, stage), time.Now()); err != nil {
			return fmt.Errorf("status of %s: %w", p.name, err)
		}
	}
	a.add(p)
	return nil
}
