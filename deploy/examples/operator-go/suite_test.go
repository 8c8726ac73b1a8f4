package sites

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var (
	environment = &envtest.Environment{CRDDirectoryPaths: []string{"crds"}, ErrorIfCRDPathMissing: true}
	k8s         client.Client
)

// TestMain is an envtest suite as every operator has one. Nothing here knows which server it runs on.
func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if err := AddToScheme(scheme.Scheme); err != nil {
		panic(err)
	}
	begun := time.Now()
	config, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "envtest does not start:", err)
		return 1
	}
	fmt.Printf("envtest: started in %d ms\n", time.Since(begun).Milliseconds())
	defer func() {
		begun := time.Now()
		if err := environment.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Printf("envtest: stopped in %d ms\n", time.Since(begun).Milliseconds())
	}()
	if k8s, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		panic(err)
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		panic(err)
	}
	if err := (&Reconciler{manager.GetClient()}).SetupWithManager(manager); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- manager.Start(ctx) }()
	defer func() { stop(); <-done }()
	return m.Run()
}

// newNamespace is one for the test alone.
func newNamespace(t *testing.T) string {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "sites-"}}
	if err := k8s.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	condition := func(ctx context.Context) (bool, error) { return holds(ctx), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
