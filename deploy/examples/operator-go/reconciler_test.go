package sites

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func newSite(t *testing.T, namespace string) *Site {
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "blog"}, Spec: SiteSpec{Title: "Blog", Pages: 2}}
	if err := k8s.Create(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	return site
}

func published(t *testing.T, site *Site, pages int) {
	t.Helper()
	eventually(t, "published", func(ctx context.Context) bool {
		return k8s.Get(ctx, client.ObjectKeyFromObject(site), site) == nil && site.Status.Published == pages
	})
}

func gone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, object.GetName()+" gone", func(ctx context.Context) bool {
		return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(object), object))
	})
}

func pagesOf(site *Site) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-pages"}}
}

func TestASiteIsPublishedAndFollowed(t *testing.T) {
	site := newSite(t, newNamespace(t))
	published(t, site, 2)
	pages := pagesOf(site)
	if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(pages), pages); err != nil {
		t.Fatal(err)
	}
	if len(pages.Data) != 2 || !metav1.IsControlledBy(pages, site) {
		t.Fatalf("unexpected pages: %v", pages)
	}
	site.Spec.Pages = 3
	if err := k8s.Update(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	published(t, site, 3)
}

func TestTheSchemaHolds(t *testing.T) {
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "huge"}, Spec: SiteSpec{Title: "Huge", Pages: 11}}
	if err := k8s.Create(t.Context(), site); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.pages") {
		t.Fatalf("expected spec.pages to be invalid, not: %v", err)
	}
}

// On a stock envtest the pages would stay for ever: nobody collects garbage there.
func TestWhatASiteOwnsGoesWithIt(t *testing.T) {
	site := newSite(t, newNamespace(t))
	published(t, site, 2)
	if err := k8s.Delete(t.Context(), site); err != nil {
		t.Fatal(err)
	}
	gone(t, site)
	gone(t, pagesOf(site))
	archive := &corev1.ConfigMap{}
	if err := k8s.Get(t.Context(), client.ObjectKey{Namespace: site.Namespace, Name: Archive}, archive); err != nil {
		t.Fatal(err)
	}
	if archive.Data["blog"] != "Blog" {
		t.Fatalf("not archived: %v", archive.Data)
	}
}

// On a stock envtest the namespace would stay Terminating.
func TestANamespaceGoesWithItsSites(t *testing.T) {
	namespace := newNamespace(t)
	site := newSite(t, namespace)
	published(t, site, 2)
	if err := k8s.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	gone(t, site)
	gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
}

func TestAUserMayNoMoreThanRolesSay(t *testing.T) {
	user, err := environment.AddUser(envtest.User{Name: "reader", Groups: []string{"readers"}}, &rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := client.New(user.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := reader.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Fatalf("expected to be forbidden, not: %v", err)
	}
}
