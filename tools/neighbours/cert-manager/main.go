// The programs of cert-manager: controller, webhook and cainjector. Upstream's own main packages are modules that the module proxy does
// not serve, so this one starts them from the same packages, with the flags of upstream's Helm chart as constants. It leaves out the
// controllers of ACME, Vault, Venafi, Ingresses and Gateways, and leader election.
//
//	cert-manager controller|cainjector -kubeconfig FILE
//	cert-manager webhook -kubeconfig FILE -port PORT
//
// This module has a name below cert-manager's, because Go permits imports of internal packages only there.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webhookconfig "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	certmanager "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	logf "github.com/cert-manager/cert-manager/pkg/logs"
	"github.com/cert-manager/cert-manager/pkg/util"
)

const namespace = "cert-manager"

func main() {
	command := os.Args[1]
	flags := flag.NewFlagSet(command, flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "kubeconfig of the API server")
	port := flags.Int("port", 0, "port of the webhook")
	_ = flags.Parse(os.Args[2:])
	logf.InitLogs()
	ctrl.SetLogger(logf.Log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx = logf.NewContext(ctx, logf.Log, command)
	var err error
	switch command {
	case "controller":
		err = runControllers(ctx, *kubeconfig)
	case "cainjector":
		err = runInjector(ctx, *kubeconfig)
	case "webhook":
		err = runWebhook(ctx, *kubeconfig, int32(*port))
	}
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func runControllers(ctx context.Context, kubeconfig string) error {
	options := controller.ContextOptions{
		Kubeconfig:    kubeconfig,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			CopiedAnnotationPrefixes:                 []string{"*", "-kubectl.kubernetes.io/"},
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	}
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, construct := range controller.Known() {
		loop, err := construct(factory)
		if err != nil {
			return err
		}
		group.Go(func() error { return loop.Run(5, ctx) })
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

func runInjector(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubernetes.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, certmanager.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(config, "cainjector"), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	kinds := map[string]bool{"mutatingwebhookconfiguration": true, "validatingwebhookconfiguration": true, "apiservice": true, "customresourcedefinition": true}
	options := cainjector.SetupOptions{EnableCertificatesDataSource: true, EnabledReconcilersFor: kinds}
	if err := cainjector.RegisterAllInjectors(ctx, manager, options); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func runWebhook(ctx context.Context, kubeconfig string, port int32) error {
	options := webhookconfig.WebhookConfiguration{KubeConfig: kubeconfig, SecurePort: port, MetricsListenAddress: "0"}
	options.TLSConfig.Dynamic.SecretNamespace = namespace
	options.TLSConfig.Dynamic.SecretName = "cert-manager-webhook-ca"
	options.TLSConfig.Dynamic.DNSNames = []string{"cert-manager-webhook.cert-manager.svc"}
	options.TLSConfig.Dynamic.LeafDuration = 7 * 24 * time.Hour
	server, err := webhook.NewCertManagerWebhookServer(logf.Log, options)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}
