package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	deployment := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "turbines", Name: "rotors"}
	webhook := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "turbines", Name: "webhook"}
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "rotors.example.com"}
	account := hubv1.ObjectIdentity{Kind: "ServiceAccount", Namespace: "turbines", Name: "rotors"}
	applied := func(cluster, version string) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: cluster, Applied: metav1.ConditionTrue, Health: hubv1.HealthDegraded, Digest: "d", Version: version}
	}
	away := hubv1.ClusterRow{Name: "eu", Applied: metav1.ConditionUnknown, Digest: "d", Version: "v1.0.0"}
	refused := hubv1.ClusterRow{Name: "eu", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden}
	leaving := stored(deployment, applied("eu", "v1.0.0"))
	leaving.Binding.BindingSpec().Clusters[0].State = hubv1.TargetAbsent
	evicting := stored(deployment, applied("eu", "v1.0.0"))
	evicting.Binding.BindingSpec().Clusters[0].State = hubv1.TargetEvicting
	is := func(version string, installed bool) map[string]hubv1.OperatorFact {
		return map[string]hubv1.OperatorFact{"eu": {Name: "rotors", Version: version, Installed: installed}}
	}
	for name, tc := range map[string]struct {
		objects      []operator.Stored
		wasInstalled bool
		want         map[string]hubv1.OperatorFact
	}{
		"an operator is installed when all its needed objects are applied": {
			objects: []operator.Stored{stored(deployment, applied("eu", "v1.0.0")), stored(definition, applied("eu", ""))}, want: is("v1.0.0", true),
		},
		"it is not installed while one is refused": {
			objects: []operator.Stored{stored(deployment, applied("eu", "v1.0.0")), stored(definition, refused)}, want: is("v1.0.0", false),
		},
		"it is not installed while one has no decision": {
			objects: []operator.Stored{stored(deployment, applied("eu", "v1.0.0")), {ObjectIdentity: definition}}, want: is("v1.0.0", false),
		},
		"it stays installed with a new object that is refused": {
			objects: []operator.Stored{stored(deployment, applied("eu", "v1.0.0")), stored(definition, refused)}, wasInstalled: true, want: is("v1.0.0", true),
		},
		"an object that the revision of the cluster does not have does not count": {
			objects: []operator.Stored{stored(deployment, applied("eu", "v1.0.0")), {ObjectIdentity: definition, NotOn: func(string) bool { return true }}},
			want:    is("v1.0.0", true),
		},
		"a cluster that is away has it installed":   {objects: []operator.Stored{stored(deployment, away)}, want: is("v1.0.0", true)},
		"a cluster that it moves away from has it":  {objects: []operator.Stored{evicting}, want: is("v1.0.0", true)},
		"a cluster that it leaves does not have it": {objects: []operator.Stored{leaving}, wasInstalled: true, want: map[string]hubv1.OperatorFact{}},
		"other objects do not matter": {
			objects: []operator.Stored{stored(deployment, applied("eu", "v1.0.0")), stored(account, refused, hubv1.ClusterRow{Name: "us"})}, want: is("v1.0.0", true),
		},
		"the lowest of two versions counts": {
			objects: []operator.Stored{stored(deployment, applied("eu", "v1.10.0")), stored(webhook, applied("eu", "v1.9.0"))}, want: is("v1.9.0", true),
		},
		"a candidate for a release is lower than the release": {
			objects: []operator.Stored{stored(deployment, applied("eu", "v1.10.0")), stored(webhook, applied("eu", "v1.10.0-rc.1"))}, want: is("v1.10.0-rc.1", true),
		},
		"a text is lower than a version": {
			objects: []operator.Stored{stored(deployment, applied("eu", "1.10")), stored(webhook, applied("eu", "main"))}, want: is("main", true),
		},
		"a workload without a version does not matter": {
			objects: []operator.Stored{stored(deployment, applied("eu", "")), stored(webhook, applied("eu", "1.10"))}, want: is("1.10", true),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := operator.Facts("rotors", tc.objects, map[string]bool{"eu": tc.wasInstalled})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
