package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func placementFor(kind string, change func(*hubv1.Placement)) hubv1.PlacementObject {
	p := &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all", Generation: 2},
		Spec:       hubv1.PlacementSpec{ResourceSelectors: []hubv1.ResourceSelector{{Kind: kind}}},
		Status: hubv1.PlacementStatus{Conditions: []metav1.Condition{
			{Type: hubv1.ConditionAccepted, Status: metav1.ConditionTrue, Reason: hubv1.ReasonAccepted, ObservedGeneration: 2},
		}},
	}
	change(p)
	return p
}

func TestAnObjectWithoutABindingGetsAReason(t *testing.T) {
	plain := func(*hubv1.Placement) {}
	accepted := func(status metav1.ConditionStatus, reason, message string) func(*hubv1.Placement) {
		return func(p *hubv1.Placement) {
			p.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionAccepted, Status: status, Reason: reason, Message: message, ObservedGeneration: 2}}
		}
	}
	tests := map[string]struct {
		kind       string
		labels     map[string]string
		placements []hubv1.PlacementObject
		want       NotFederated
	}{
		"nothing selects it": {
			want: NotFederated{hubv1.ReasonNotSelected, "no placement selects it", "create a Placement in namespace shop with resourceSelectors: [{kind: ConfigMap}]"},
		},
		"a placement selects its kind and another name": {
			placements: []hubv1.PlacementObject{placementFor("ConfigMap", func(p *hubv1.Placement) { p.Spec.ResourceSelectors[0].Name = "other" })},
			want: NotFederated{
				hubv1.ReasonNotSelected, "no placement selects it; Placement/all selects the kind, but not the name, labels or namespace of this object",
				"compare the selectors of these placements with the object",
			},
		},
		"it is a copy": {
			labels: map[string]string{hubv1.HubLabel: "1234"}, placements: []hubv1.PlacementObject{placementFor("ConfigMap", plain)},
			want: NotFederated{
				hubv1.ReasonNotFederated, "it has the label hanse.dev/hub: a hub wrote it as a copy, and Hanse does not place copies",
				"look at the object on the hub that wrote the copy",
			},
		},
		"the hub itself would act on it": {
			kind: "ResourceQuota", placements: []hubv1.PlacementObject{placementFor("ResourceQuota", plain)},
			want: NotFederated{
				hubv1.ReasonHubWouldRun, "Placement/all selects it, but the hub itself would act on a ResourceQuota",
				"set spec.hubExecution to Allowed in Placement/all to place it although the hub acts on it",
			},
		},
		"the hub may not read the kind": {
			placements: []hubv1.PlacementObject{placementFor("ConfigMap", accepted(metav1.ConditionFalse, hubv1.ReasonNotFederated, "the hub may not list ConfigMap"))},
			want: NotFederated{
				hubv1.ReasonNotFederated, "Placement/all selects it but is not accepted: the hub may not list ConfigMap",
				"run hansectl federate, or add the kind to federatedKinds of the chart hanse-hub",
			},
		},
		"scheduling is suspended": {
			placements: []hubv1.PlacementObject{placementFor("ConfigMap", func(p *hubv1.Placement) { p.Spec.Suspend.Scheduling = true })},
			want: NotFederated{
				hubv1.ReasonSuspended, "Placement/all selects it, and suspends scheduling", "unset spec.suspend.scheduling in Placement/all",
			},
		},
		"the hub has not seen the placement as it is now": {
			placements: []hubv1.PlacementObject{placementFor("ConfigMap", func(p *hubv1.Placement) { p.Generation = 3 })},
			want: NotFederated{
				hubv1.ReasonPending, "Placement/all selects it, and the hub has not processed that placement yet",
				"see whether a hub runs: kubectl get lease hanse-hub -n hanse-system",
			},
		},
		"the decision is due": {
			placements: []hubv1.PlacementObject{placementFor("ConfigMap", plain)},
			want: NotFederated{
				hubv1.ReasonPending, "Placement/all selects it, and the hub has not decided on it yet",
				"try again in a moment; then look at the object's events and at the log of hanse-hub",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			kind := tc.kind
			if kind == "" {
				kind = "ConfigMap"
			}
			object := &unstructured.Unstructured{}
			object.SetLabels(tc.labels)
			id := hubv1.ObjectIdentity{Kind: kind, Namespace: "shop", Name: "settings"}
			if diff := cmp.Diff(tc.want, *WhyNot(id, object, Surroundings{Placements: tc.placements})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnObjectOfASystemNamespaceIsNotFederated(t *testing.T) {
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "kube-system", Name: "settings"}
	got := unbound(id, &unstructured.Unstructured{}, placementFor("ConfigMap", func(*hubv1.Placement) {}))
	if got.Reason != hubv1.ReasonNamespaceRefused || !strings.Contains(got.Do, "the namespace is kube-system: use another one") {
		t.Errorf("got %+v", got)
	}
}

func TestASecretThatIsACredentialOfTheHubIsNotFederated(t *testing.T) {
	token := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token"}}
	id := hubv1.ObjectIdentity{Kind: "Secret", Namespace: "shop", Name: "token"}
	got := WhyNot(id, token, Surroundings{Placements: []hubv1.PlacementObject{placementFor("Secret", func(*hubv1.Placement) {})}})
	if got.Reason != hubv1.ReasonSecretTypeRefused || !strings.Contains(got.Do, "create one on the member") {
		t.Errorf("got %+v", got)
	}
}
