package replicas

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	aDeployment = "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 12}}"
	aCluster    = "{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, spec: {instances: 3, deep: {a/b: 7}, name: x, huge: 3000000000, less: -1}}"
)

func TestWhichNumberIsDivided(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object, path string
		owned        []string
		scale        string
		want         Field
		says         string
	}{
		"the replicas of a Deployment":             {object: aDeployment, want: Field{Path: "/spec/replicas", Total: 12}},
		"the replicas of a ReplicaSet, 1 if unset": {object: "{apiVersion: apps/v1, kind: ReplicaSet, spec: {}}", want: Field{Path: "/spec/replicas", Total: 1}},
		"the completions of a Job stay with the cluster that has them": {
			object: "{apiVersion: batch/v1, kind: Job, spec: {completions: 20, parallelism: 4}}", want: Field{Path: "/spec/completions", Total: 20, Fixed: true}},
		"the pods of a Job that is a queue": {object: "{apiVersion: batch/v1, kind: Job, spec: {parallelism: 4}}", want: Field{Path: "/spec/parallelism", Total: 4}},
		"the pods of a Job if that is said": {
			object: "{apiVersion: batch/v1, kind: Job, spec: {completions: 20, parallelism: 4}}", path: "/spec/parallelism", want: Field{Path: "/spec/parallelism", Total: 4}},
		"the path of another kind":   {object: aCluster, path: "/spec/instances", want: Field{Path: "/spec/instances", Total: 3}},
		"a path with an escaped key": {object: aCluster, path: "/spec/deep/a~1b", want: Field{Path: "/spec/deep/a~1b", Total: 7}},
		"a path wins over what is known": {object: "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 12, minReadySeconds: 3}}", path: "/spec/minReadySeconds",
			want: Field{Path: "/spec/minReadySeconds", Total: 3}},
		"a kind of the same name in another group is another kind": {object: "{apiVersion: example.com/v1, kind: Deployment, spec: {replicas: 12}}",
			says: "dividing the replicas of a Deployment.example.com: the field with the replicas is not known: set spec.replicas.path; its definition has no scale subresource to suggest one"},
		"the scale path is a suggestion only": {object: "{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, spec: {replicas: 2, shards: 3}}", scale: ".spec.shards",
			says: "dividing the replicas of a Prometheus.monitoring.coreos.com: the field with the replicas is not known: set spec.replicas.path; " +
				"the scale subresource of its definition suggests /spec/shards, if that number can be divided"},
		"a path that is not there": {object: aCluster, path: "/spec/replicas",
			says: "dividing /spec/replicas of the Cluster: the field is missing: set it on the hub object, or correct spec.replicas.path"},
		"a path through a number": {object: aCluster, path: "/spec/instances/of",
			says: "dividing /spec/instances/of of the Cluster: the field is missing: set it on the hub object, or correct spec.replicas.path"},
		"a path to a text":       {object: aCluster, path: "/spec/name", says: "dividing /spec/name of the Cluster: the field is not a whole number between 0 and 2147483647"},
		"a number that is huge":  {object: aCluster, path: "/spec/huge", says: "dividing /spec/huge of the Cluster: the field is not a whole number between 0 and 2147483647"},
		"a number below nothing": {object: aCluster, path: "/spec/less", says: "dividing /spec/less of the Cluster: the field is not a whole number between 0 and 2147483647"},
		"a Job that counts its pods": {object: "{apiVersion: batch/v1, kind: Job, spec: {completions: 20, completionMode: Indexed}}",
			says: "dividing /spec/completions of the Job: each copy of a Job with completionMode Indexed would start with index 0 and do the same work: " +
				"use NonIndexed, or spec.replicas.type Duplicate"},
		"what is left to members": {object: aDeployment, owned: []string{"/spec/replicas"},
			says: "dividing /spec/replicas: spec.apply.memberOwnedFields leaves /spec/replicas to members: remove it there, or set spec.replicas.type to Duplicate"},
		"what is left to members with others": {object: aCluster, path: "/spec/deep/a~1b", owned: []string{"/spec/deep"},
			says: "dividing /spec/deep/a~1b: spec.apply.memberOwnedFields leaves /spec/deep to members: remove it there, or set spec.replicas.type to Duplicate"},
		"what is left to members and begins alike": {object: aDeployment, owned: []string{"/spec/replicasMax"}, want: Field{Path: "/spec/replicas", Total: 12}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := parse(t, tc.object)
			spec := &hubv1.PlacementSpec{Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: tc.path}}
			spec.Apply.MemberOwnedFields = tc.owned
			got, err := Locate(object.GroupVersionKind().GroupKind(), spec, object, tc.scale)
			if tc.says != "" {
				if err == nil || err.Error() != tc.says {
					t.Fatalf("error\n%v, want\n%s", err, tc.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyADivisionNeedsAPath(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Group: "example.com", Kind: "Widget"}
	if err := CheckKind(kind, &hubv1.PlacementSpec{Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDuplicate}}, ""); err != nil {
		t.Error(err)
	}
	if err := CheckKind(kind, &hubv1.PlacementSpec{Replicas: hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/size"}}, ""); err != nil {
		t.Error(err)
	}
}

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestWhatOneReplicaAsksFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		object string
		stated corev1.ResourceList
		want   corev1.ResourceList
		says   string
	}{
		"the sum over the containers": {object: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {containers: [
			{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}}, {name: b, resources: {requests: {cpu: 250m}}}]}}}}`, want: list("cpu", "750m", "memory", "1Gi", "pods", "1")},
		"an init container that asks for more, and overhead": {object: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {overhead: {cpu: 100m},
			initContainers: [{name: i, resources: {requests: {cpu: "2"}}}], containers: [{name: a, resources: {requests: {cpu: 500m}}}]}}}}`, want: list("cpu", "2100m", "pods", "1")},
		"a sidecar beside the containers": {object: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {
			initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: 300m}}}], containers: [{name: a, resources: {requests: {cpu: 500m}}}]}}}}`, want: list("cpu", "800m", "pods", "1")},
		"limits where no request is stated": {object: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {containers: [
			{name: a, resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 500m}}}]}}}}`, want: list("cpu", "500m", "memory", "1Gi", "pods", "1")},
		"a pod if nothing is stated": {object: `{kind: Deployment, apiVersion: apps/v1, spec: {template: {spec: {containers: [{name: a}]}}}}`, want: list("pods", "1")},
		"what the policy says":       {object: aCluster, stated: list("cpu", "2"), want: list("cpu", "2", "pods", "1")},
		"as many pods as it says":    {object: aCluster, stated: list("pods", "3"), want: list("pods", "3")},
		"no pod template": {object: aCluster, says: "finding the requests of one replica of the Cluster: the object has no pod template at /spec/template: " +
			"set spec.replicas.requests to the requests of one replica"},
		"a template of something else": {object: "{kind: Claim, apiVersion: example.com/v1, spec: {template: {spec: {size: 1}}}}",
			says: "finding the requests of one replica of the Claim: the object has no pod template at /spec/template: set spec.replicas.requests to the requests of one replica"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Requests(&hubv1.ReplicasPolicy{Requests: tc.stated}, parse(t, tc.object))
			if tc.says != "" {
				if err == nil || err.Error() != tc.says {
					t.Fatalf("error\n%v, want\n%s", err, tc.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRequestsLeaveThePolicyAsItIs(t *testing.T) {
	t.Parallel()
	policy := &hubv1.ReplicasPolicy{Requests: list("cpu", "1")}
	if _, err := Requests(policy, parse(t, aCluster)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list("cpu", "1"), policy.Requests); diff != "" {
		t.Error(diff)
	}
}

func TestHowManyFit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		have, ask corev1.ResourceList
		want      int64
	}{
		"the scarcest counts":                   {list("cpu", "4", "memory", "3Gi", "pods", "110"), list("cpu", "500m", "memory", "1Gi", "pods", "1"), 3},
		"pods count":                            {list("cpu", "400", "pods", "110"), list("cpu", "1", "pods", "1"), 110},
		"a cluster that does not count pods":    {list("cpu", "4"), list("cpu", "1", "pods", "1"), 4},
		"what a cluster does not have":          {list("cpu", "4", "pods", "110"), list("nvidia.com/gpu", "1"), 0},
		"nothing is asked for":                  {list("cpu", "4"), list(), Unlimited},
		"nothing of a resource is asked for":    {list("cpu", "4"), list("cpu", "0", "memory", "-1"), Unlimited},
		"less than nothing is there":            {list("cpu", "-4"), list("cpu", "1"), 0},
		"more than can be counted in thousands": {list("memory", "7Ei"), list("memory", "1Ei"), 7},
		"the smallest that can be asked for":    {list("cpu", "1"), list("cpu", "1n"), 1000},
		"no nodes":                              {list(), list("cpu", "1", "pods", "1"), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Room(tc.have, tc.ask); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func TestTerms(t *testing.T) {
	t.Parallel()
	of := func(n int32) *int32 { return &n }
	region := &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: "eu"}}}
	named := &hubv1.RuleClusters{Names: []string{"eu-1"}}
	way := hubv1.DividePolicy{
		Weights: []hubv1.ReplicaWeight{{Clusters: named, Weight: 5}, {Clusters: region, Weight: 2}},
		Limits:  []hubv1.ReplicaLimit{{Clusters: region, MinReplicas: of(1)}, {MaxReplicas: of(4)}},
	}
	tests := map[string]struct {
		way    hubv1.DividePolicy
		name   string
		region string
		want   Cluster
	}{
		"the first entry counts":                   {way, "eu-1", "eu", Cluster{Weight: 5, Min: 1, Max: Unlimited}},
		"the next one if that is for others":       {way, "eu-2", "eu", Cluster{Weight: 2, Min: 1, Max: Unlimited}},
		"no entry is a weight of nothing":          {way, "us-1", "us", Cluster{Max: 4}},
		"no weights are the same for all":          {hubv1.DividePolicy{}, "us-1", "us", Cluster{Weight: 1, Max: Unlimited}},
		"an entry without clusters is for all":     {hubv1.DividePolicy{Weights: []hubv1.ReplicaWeight{{Weight: 3}}}, "us-1", "us", Cluster{Weight: 3, Max: Unlimited}},
		"a name and labels must both be the right": {hubv1.DividePolicy{Weights: []hubv1.ReplicaWeight{{Weight: 3, Clusters: &hubv1.RuleClusters{Names: named.Names, LabelSelector: region.LabelSelector}}}}, "eu-1", "us", Cluster{Max: Unlimited}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			terms, err := TermsOf(tc.way)
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Name, tc.want.Room = tc.name, Unlimited
			if diff := cmp.Diff(tc.want, terms.Cluster(tc.name, map[string]string{hubv1.RegionLabel: tc.region})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestASelectorThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	bad := &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}}
	tests := map[string]hubv1.DividePolicy{
		`reading spec.replicas.divide.weights[0].clusters.labelSelector: "Like" is not a valid label selector operator`: {Weights: []hubv1.ReplicaWeight{{Clusters: bad}}},
		`reading spec.replicas.divide.limits[1].clusters.labelSelector: "Like" is not a valid label selector operator`:  {Limits: []hubv1.ReplicaLimit{{}, {Clusters: bad}}},
	}
	for says, way := range tests {
		if _, err := TermsOf(way); err == nil || err.Error() != says {
			t.Errorf("error %v, want %s", err, says)
		}
	}
}

func TestWhatTheManifestOfAClusterSays(t *testing.T) {
	t.Parallel()
	share := func(name string, n int32) hubv1.BindingTarget {
		return hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent, Replicas: &n}
	}
	widget := hubv1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget"}
	batch := hubv1.ObjectReference{APIVersion: "batch/v1", Kind: "Job"}
	work := []hubv1.BindingTarget{share("a", 6), share("b", 3), share("c", 1), share("d", 0), {Name: "e", State: hubv1.TargetAbsent}}
	tests := map[string]struct {
		ref      hubv1.ObjectReference
		path     string
		clusters []hubv1.BindingTarget
		template string
		cluster  string
		want     []Value
		pending  bool
	}{
		"nothing else if nothing is divided":       {ref: widget, clusters: work, template: aCluster, cluster: "a"},
		"the share":                                {ref: widget, path: "/spec/size", clusters: work, template: aCluster, cluster: "b", want: []Value{{"/spec/size", 3}}},
		"a share of nothing":                       {ref: widget, path: "/spec/size", clusters: work, template: aCluster, cluster: "d", want: []Value{{"/spec/size", 0}}},
		"nothing before there is a share":          {ref: widget, path: "/spec/size", clusters: []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}}, template: aCluster, cluster: "a", pending: true},
		"the pods of a Job follow its completions": {ref: batch, path: "/spec/completions", clusters: work, template: "{kind: Job, apiVersion: batch/v1, spec: {parallelism: 5}}", cluster: "a", want: []Value{{"/spec/completions", 6}, {"/spec/parallelism", 3}}},
		"one pod at least where there is work":     {ref: batch, path: "/spec/completions", clusters: work, template: "{kind: Job, apiVersion: batch/v1, spec: {parallelism: 1}}", cluster: "c", want: []Value{{"/spec/completions", 1}, {"/spec/parallelism", 1}}},
		"one pod if the Job does not say":          {ref: batch, path: "/spec/completions", clusters: work, template: "{kind: Job, apiVersion: batch/v1, spec: {}}", cluster: "a", want: []Value{{"/spec/completions", 6}, {"/spec/parallelism", 1}}},
		"no pod where there is no work":            {ref: batch, path: "/spec/completions", clusters: work, template: "{kind: Job, apiVersion: batch/v1, spec: {parallelism: 5}}", cluster: "d", want: []Value{{"/spec/completions", 0}, {"/spec/parallelism", 0}}},
		"no pod of a Job that is held up":          {ref: batch, path: "/spec/completions", clusters: work, template: "{kind: Job, apiVersion: batch/v1, spec: {parallelism: 0}}", cluster: "a", want: []Value{{"/spec/completions", 6}, {"/spec/parallelism", 0}}},
		"a queue has no completions":               {ref: batch, path: "/spec/parallelism", clusters: work, template: "{kind: Job, apiVersion: batch/v1, spec: {parallelism: 10}}", cluster: "a", want: []Value{{"/spec/parallelism", 6}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &hubv1.BindingSpec{ObjectRef: tc.ref, Clusters: tc.clusters}
			if tc.path != "" {
				spec.Division = &hubv1.Division{Path: tc.path}
			}
			got, decided := Values(spec, tc.cluster, parse(t, tc.template))
			if diff := cmp.Diff(tc.want, got); diff != "" || decided == tc.pending {
				t.Errorf("decided %v, want %v; values (-want +got):\n%s", decided, !tc.pending, diff)
			}
		})
	}
}
