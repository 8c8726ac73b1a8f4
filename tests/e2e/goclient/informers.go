package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const writers = 8

// manyInformers runs informers with a ConfigMap each, over a client that counts its connections. It creates, updates and
// deletes the ConfigMaps, and prints how many informers have seen each event exactly once.
func manyInformers(config *rest.Config, namespace string, count int) {
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Second)
	defer cancel()
	var connections atomic.Int32
	dialer := net.Dialer{}
	config.QPS = -1
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		return dialer.DialContext(ctx, network, address)
	}
	client, err := kubernetes.NewForConfig(config)
	must(err)

	type event struct {
		informer int
		kind     watch.EventType
		name     string
	}
	events := make(chan event, 10*count)
	for i := range count {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = fmt.Sprintf("informer=i%d", i) }))
		informer := factory.Core().V1().ConfigMaps().Informer()
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { events <- event{i, watch.Added, o.(*corev1.ConfigMap).Name} },
			UpdateFunc: func(_, o any) { events <- event{i, watch.Modified, o.(*corev1.ConfigMap).Name} },
			DeleteFunc: func(o any) { events <- event{i, watch.Deleted, o.(*corev1.ConfigMap).Name} },
		})
		must(err)
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			must(fmt.Errorf("informer %d never synced", i))
		}
	}
	fmt.Println("synced", count)

	api := client.CoreV1().ConfigMaps(namespace)
	all := func(write func(name string, object *corev1.ConfigMap) error) {
		var group sync.WaitGroup
		for worker := range writers {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := worker; i < count; i += writers {
					name := fmt.Sprintf("i%d", i)
					meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"informer": name}}
					must(write(name, &corev1.ConfigMap{ObjectMeta: meta}))
				}
			}()
		}
		group.Wait()
	}
	seen := func(kind watch.EventType) {
		informed := map[int]bool{}
		for range count {
			select {
			case got := <-events:
				if got.kind != kind || got.name != fmt.Sprintf("i%d", got.informer) || informed[got.informer] {
					must(fmt.Errorf("unexpected event: %v, expected a new %s", got, kind))
				}
				informed[got.informer] = true
			case <-ctx.Done():
				must(fmt.Errorf("%d of %d events: %s", len(informed), count, kind))
			}
		}
		fmt.Println(kind, len(informed))
	}
	all(func(_ string, object *corev1.ConfigMap) error {
		_, err := api.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	seen(watch.Added)
	all(func(_ string, object *corev1.ConfigMap) error {
		object.Data = map[string]string{"changed": "yes"}
		_, err := api.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	seen(watch.Modified)
	all(func(name string, _ *corev1.ConfigMap) error { return api.Delete(ctx, name, metav1.DeleteOptions{}) })
	seen(watch.Deleted)
	fmt.Println("connections", connections.Load())
}
