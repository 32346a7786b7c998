package policies

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/clusters"
)

// rows returns a stored object of an operator. Its binding has these rows in the status, and a target in the spec for
// each row.
func rows(id hubv1.ObjectIdentity, rows ...hubv1.ClusterRow) bundled {
	b := hubv1.NewBinding(id.BindingKey())
	for _, r := range rows {
		b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, hubv1.BindingTarget{Name: r.Name, State: hubv1.TargetPresent})
	}
	b.BindingStatus().Clusters = rows
	return bundled{id: id, generation: 1, binding: b}
}

func healthy(cluster string) hubv1.ClusterRow {
	return hubv1.ClusterRow{Name: cluster, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}
}

func TestTheStatusOfAnOperatorNamesTheClustersWhereItIsNotReady(t *testing.T) {
	t.Parallel()
	deployment := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "turbines", Name: "rotors"}
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "rotors.example.com"}
	role := hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "rotors"}
	progressing := hubv1.ClusterRow{Name: "us", Applied: metav1.ConditionTrue, Health: hubv1.HealthProgressing, Message: "0/1 replicas are available"}
	refused := hubv1.ClusterRow{Name: "us", Applied: metav1.ConditionFalse, Health: hubv1.HealthHealthy, Message: "no right to create"}
	absent := rows(deployment, healthy("eu"))
	absent.binding.BindingSpec().Clusters[0].State = hubv1.TargetAbsent
	tests := map[string]struct {
		objects      []bundled
		total, ready int32
		notReady     []hubv1.OperatorOnCluster
	}{
		"an operator without bindings is on no cluster": {objects: []bundled{{id: deployment}}},
		"all objects are healthy everywhere": {
			objects: []bundled{rows(deployment, healthy("eu"), healthy("us")), rows(definition, healthy("eu"), healthy("us"))}, total: 2, ready: 2,
		},
		"a workload is not healthy on one cluster": {
			objects: []bundled{rows(deployment, healthy("eu"), progressing), rows(definition, healthy("eu"), healthy("us"))}, total: 2, ready: 1,
			notReady: []hubv1.OperatorOnCluster{{Name: "us", Message: "Deployment.apps turbines/rotors is Progressing: 0/1 replicas are available"}},
		},
		"a copy is not applied on one cluster": {
			objects: []bundled{rows(deployment, healthy("eu"), refused)}, total: 2, ready: 1,
			notReady: []hubv1.OperatorOnCluster{{Name: "us", Message: "Deployment.apps turbines/rotors cannot be written: no right to create"}},
		},
		"a definition has no decision for one cluster": {
			objects: []bundled{rows(deployment, healthy("eu")), rows(definition)}, total: 1,
			notReady: []hubv1.OperatorOnCluster{{Name: "eu", Message: "CustomResourceDefinition.apiextensions.k8s.io rotors.example.com has no decision for the cluster"}},
		},
		"roles do not matter":                           {objects: []bundled{rows(deployment, healthy("eu")), rows(role, progressing)}, total: 1, ready: 1},
		"a cluster that the operator leaves is no more": {objects: []bundled{absent}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var o hubv1.FederatedOperator
			foldOperator(&o, tc.objects)
			if o.Status.Total != tc.total || o.Status.Ready != tc.ready {
				t.Errorf("%d of %d clusters are ready", o.Status.Ready, o.Status.Total)
			}
			if diff := cmp.Diff(tc.notReady, o.Status.NotReady); diff != "" {
				t.Errorf("not ready (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("at most 100 clusters are named", func(t *testing.T) {
		var all []hubv1.ClusterRow
		for i := range 150 {
			r := progressing
			r.Name = fmt.Sprintf("c-%03d", i)
			all = append(all, r)
		}
		var o hubv1.FederatedOperator
		foldOperator(&o, []bundled{rows(deployment, all...)})
		if len(o.Status.NotReady) != 100 || o.Status.NotReady[99].Name != "c-099" || o.Status.Total != 150 || o.Status.Ready != 0 {
			t.Errorf("%d clusters are named, up to %s; total %d, ready %d", len(o.Status.NotReady), o.Status.NotReady[99].Name, o.Status.Total, o.Status.Ready)
		}
	})
}

// operatorTemplates has one stored object, which belongs to the FederatedOperator rotors.
type operatorTemplates struct {
	fakeTemplates
	id hubv1.ObjectIdentity
}

func (o *operatorTemplates) Get(hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	return &unstructured.Unstructured{}, true
}

func (o *operatorTemplates) StoredOf(of hubv1.BundleReference) []hubv1.ObjectIdentity {
	if of == operatorNamed(types.NamespacedName{Name: "rotors"}) {
		return []hubv1.ObjectIdentity{o.id}
	}
	return nil
}

func TestTheOperatorsOfAMemberCluster(t *testing.T) {
	templates := &operatorTemplates{id: hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "rotors.example.com"}}
	c := start(t, templates)
	cluster := memberCluster(t, c, "op-1")
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: "rotors"}}
	o.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"turbines"}}`)}}
	o.Spec.ServiceAccountName = "operators"
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	of := hubv1.ReferenceTo(o)
	b := &hubv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: templates.id.BindingName()}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "apiextensions.k8s.io/v1", Kind: templates.id.Kind, Name: templates.id.Name, UID: "u", Bundle: &of}
	b.Spec.Clusters = []hubv1.BindingTarget{{Name: cluster.Name, State: hubv1.TargetPresent}}
	if err := c.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	reports := func(row hubv1.ClusterRow) {
		t.Helper()
		row.Name = cluster.Name
		b.Status.Clusters = []hubv1.ClusterRow{row}
		if err := c.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	becomes := func(what string, want ...hubv1.OperatorFact) {
		t.Helper()
		eventually(t, c, cluster, what, func() bool { return slices.Equal(want, cluster.Status.Operators) })
	}
	becomes("an operator that is placed", hubv1.OperatorFact{Name: "rotors"})
	reports(hubv1.ClusterRow{Applied: metav1.ConditionTrue, Version: "1.0.0"})
	becomes("an operator that is applied", hubv1.OperatorFact{Name: "rotors", Version: "1.0.0", Installed: true})
	reports(hubv1.ClusterRow{Applied: metav1.ConditionFalse, Version: "1.1.0"})
	becomes("an operator that was applied", hubv1.OperatorFact{Name: "rotors", Version: "1.1.0", Installed: true})
	b.Spec.Clusters = nil
	if err := c.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	becomes("an operator that has left")
}

// nothing is a client that finds no object and cannot list.
type nothing struct{ client.Client }

func (nothing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func TestNoOperatorIsRemovedBeforeItsObjectsAreRead(t *testing.T) {
	t.Parallel()
	p := &bundles{Options{Client: nothing{}, Clusters: clusters.New(nothing{}), Templates: &fakeTemplates{unread: true}}, operatorNamed}
	if again, err := p.update(t.Context(), types.NamespacedName{Name: "rotors"}); again == 0 || err != nil {
		t.Errorf("again after %s, error %v", again, err)
	}
}

func TestAMemberClusterListsTheFirst64Operators(t *testing.T) {
	t.Parallel()
	var facts []hubv1.OperatorFact
	for i := range hubv1.MaxOperators {
		facts = withFact(facts, hubv1.OperatorFact{Name: fmt.Sprintf("o-%02d", i)})
	}
	last, first := facts[len(facts)-1], hubv1.OperatorFact{Name: "a"}
	if got := withFact(facts, hubv1.OperatorFact{Name: "z"}); len(got) != hubv1.MaxOperators || got[len(got)-1] != last {
		t.Errorf("%d operators, the last one is %v", len(got), got[len(got)-1])
	}
	if got := withFact(facts, first); len(got) != hubv1.MaxOperators || got[0] != first || slices.Contains(got, last) {
		t.Errorf("%d operators: %v", len(got), got)
	}
}
