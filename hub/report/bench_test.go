package report

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// BenchmarkAPassThatTellsOfEveryCluster measures one reconcile without its two write requests and without reading the
// binding. In one case, the reconcile adds the first row of each cluster. In the other case, no row changes.
func BenchmarkAPassThatTellsOfEveryCluster(b *testing.B) {
	for _, clusters := range []int{3, 300} {
		b.Run(fmt.Sprint(clusters, " clusters, first rows"), func(b *testing.B) { benchmarkPass(b, clusters, false) })
		b.Run(fmt.Sprint(clusters, " clusters, nothing new"), func(b *testing.B) { benchmarkPass(b, clusters, true) })
	}
}

func benchmarkPass(b *testing.B, clusters int, again bool) {
	b.Helper()
	w := &world{namespace: "ns", gvk: schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Widget"}, fleet: newFakeFleet()}
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(1)}}}
	template.SetGroupVersionKind(w.gvk)
	template.SetNamespace(w.namespace)
	template.SetName("web")
	template.SetUID("object")
	template.SetGeneration(1)
	template.SetResourceVersion("1")
	var targets []hubv1.BindingTarget
	outcomes := map[string]member.Outcome{}
	for i := range clusters {
		name := fmt.Sprintf("member-%03d", i)
		targets = append(targets, present(name))
		outcomes[name] = w.outcome(template)
		w.show(template, name, hubv1.HealthHealthy, two)
	}
	binding := bindingOf(1, targets...)
	binding.Namespace, binding.Name = w.namespace, "web"
	binding.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "test.hanse.dev/v1", Kind: "Widget", Name: "web", UID: "object"}
	r := &Reporter{
		opts: Options{
			Sources: Sources{
				Fleet: w.fleet, Links: w.fleet, Templates: oneTemplate{template},
				Decisions: &fakeDecisions{scheduled: metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled}},
			},
			Shard: Shard{Holds: func(string) bool { return true }, IsHub: func(string) bool { return false }},
			Clock: clock.RealClock{},
		},
		entries: map[types.NamespacedName]*entry{},
	}
	widgets := schemaOf(b, "widgets.yaml")
	pass := func() (after hubv1.BindingStatus, changed bool) {
		run := &run{
			reporter: r, key: w.id("web").BindingKey(), id: w.id("web"), targets: targets, now: metav1.NewTime(time.Now()), in: gathered{outcomes: outcomes},
			binding: binding, part: part{leads: true, elsewhere: map[string]bool{}},
		}
		if err := run.gather(b.Context()); err != nil {
			b.Fatal(err)
		}
		run.report(b.Context())
		if run.unsettled() {
			b.Fatal("something is missing")
		}
		if _, _, err := rollup.MergeStatus(widgets, rollup.Rules{}, run.current(), run.out.rows, run.targets, run.now); err != nil {
			b.Fatal(err)
		}
		return run.out.after, run.changed()
	}
	if again {
		binding.Status, _ = pass()
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, changed := pass(); changed == again {
			b.Fatal("changed is ", changed)
		}
	}
}

type oneTemplate struct{ object *unstructured.Unstructured }

func (t oneTemplate) Get(hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	return t.object, true
}

// Content implements Templates.
func (t oneTemplate) Content(hubv1.ObjectIdentity) uint64 { return uint64(t.object.GetGeneration()) }

func schemaOf(b *testing.B, file string) rollup.Schema {
	b.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		b.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		b.Fatal(err)
	}
	s, _, err := rollup.NewSchema(&crd, "v1")
	if err != nil {
		b.Fatal(err)
	}
	return s
}
