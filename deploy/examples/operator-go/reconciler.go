package sites

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// Finalizer keeps a Site until it has been written into the archive.
	Finalizer = "example.com/archive"
	// Archive is the ConfigMap that remembers, in each namespace, which Sites there were.
	Archive = "archive"
)

// Reconciler publishes Sites.
type Reconciler struct {
	client.Client
}

// SetupWithManager has the manager call Reconcile for Sites and for what they own.
func (r *Reconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&Site{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile makes the ConfigMap of a Site what the Site says.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.archive(ctx, site)
	}
	if controllerutil.AddFinalizer(site, Finalizer) {
		if err := r.Update(ctx, site); err != nil {
			return ctrl.Result{}, err
		}
	}
	pages := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-pages"}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, pages, func() error {
		pages.Data = map[string]string{}
		for page := 1; page <= site.Spec.Pages; page++ {
			pages.Data[fmt.Sprintf("%d.html", page)] = fmt.Sprintf("<h1>%s, page %d</h1>", site.Spec.Title, page)
		}
		return controllerutil.SetControllerReference(site, pages, r.Scheme())
	})
	if err != nil || site.Status.Published == site.Spec.Pages {
		return ctrl.Result{}, err
	}
	site.Status.Published = site.Spec.Pages
	return ctrl.Result{}, r.Status().Update(ctx, site)
}

// archive lets a Site go; where its namespace goes too there is nothing to remember it in.
func (r *Reconciler) archive(ctx context.Context, site *Site) error {
	if !controllerutil.ContainsFinalizer(site, Finalizer) {
		return nil
	}
	namespace := &corev1.Namespace{}
	if err := r.Get(ctx, client.ObjectKey{Name: site.Namespace}, namespace); err != nil {
		return err
	}
	if namespace.DeletionTimestamp.IsZero() {
		archive := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: Archive}}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, archive, func() error {
			if archive.Data == nil {
				archive.Data = map[string]string{}
			}
			archive.Data[site.Name] = site.Spec.Title
			return nil
		}); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(site, Finalizer)
	return r.Update(ctx, site)
}
