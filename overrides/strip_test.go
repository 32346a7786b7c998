package overrides

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDropped(t *testing.T) {
	for name, want := range map[string][]string{
		"strip-keeps-what-a-kind-lives-by": {
			"label argocd.argoproj.io/instance",
			"annotation argocd.argoproj.io/application-set-refresh", "annotation argocd.argoproj.io/hydrate",
			"annotation argocd.argoproj.io/installation-id", "annotation argocd.argoproj.io/refresh", "annotation argocd.argoproj.io/tracking-id",
			"annotation meta.helm.sh/release-namespace",
			"finalizer resources-finalizer.argocd.argoproj.io",
		},
		"strip-what-never-travels": {
			"label app.kubernetes.io/managed-by", "label helm.toolkit.fluxcd.io/name", "label helm.toolkit.fluxcd.io/namespace",
			"label internal.example.com/cost", "label kustomize.toolkit.fluxcd.io/name", "label kustomize.toolkit.fluxcd.io/namespace",
			"annotation argocd.argoproj.io/tracking-id", "annotation deployment.kubernetes.io/revision",
			"annotation meta.helm.sh/release-name",
			"annotation pv.kubernetes.io/bound-by-controller", "finalizer example.com/hold", "owner reference to ConfigMap x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, Dropped(readFixture(t, name).object, []string{"internal.example.com/"})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := Dropped(&unstructured.Unstructured{Object: map[string]any{}}, nil); got != nil {
		t.Errorf("an object without metadata loses %v", got)
	}
}
