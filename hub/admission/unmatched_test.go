package admission_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// lookup is an admission.Lookup. unread are the resources that the hub may not read, and objects are the names that
// exist in each namespace.
type lookup struct {
	unread  []string
	objects map[string][]string
	fails   error
}

func (l lookup) Reads(_ context.Context, resource schema.GroupVersionResource, _ string) (bool, error) {
	return !slices.Contains(l.unread, resource.Resource), l.fails
}

func (l lookup) Names(_ context.Context, _ schema.GroupVersionKind, namespace, name string) ([]string, bool, error) {
	return l.objects[namespace], slices.Contains(l.objects[namespace], name), l.fails
}

func TestWhatAPolicyNamesAndDoesNotExistIsAWarningThatListsWhatExists(t *testing.T) {
	placement := func(spec string) string {
		return `{kind: Placement, metadata: {namespace: shop, name: new}, spec: ` + spec + `}`
	}
	known := lookup{objects: map[string][]string{"shop": {"t1", "t2"}}}
	tests := map[string]struct {
		policy string
		lookup lookup
		want   []string
	}{
		"all exists": {placement(`{resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: t1}], clusters: {names: [eu-1]}}`), known, nil},
		"a region with a typo": {
			placement(`{resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], clusters: {labelSelector: {matchExpressions: [{key: topology.kubernetes.io/region, operator: In, values: [cn, euu]}]}}}`),
			known, []string{"no cluster has topology.kubernetes.io/region=euu: there are cn, eu"},
		},
		"a cluster with a typo": {
			placement(`{resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}], clusters: {names: [eu-2]}}`), known, []string{"no cluster is named eu-2: there are cn-1, eu-1"},
		},
		"a kind with a typo": {
			placement(`{resourceSelectors: [{kind: ConfigMapp}], clusters: {names: [eu-1]}}`), known, []string{"resourceSelectors[0]: the hub does not serve the kind ConfigMapp; did you mean ConfigMap?"},
		},
		"a kind without its group": {
			placement(`{resourceSelectors: [{kind: Widget}], clusters: {names: [eu-1]}}`), known,
			[]string{"resourceSelectors[0]: the hub does not serve the kind Widget: set its apiGroup, or correct its name"},
		},
		"a kind without a definition": {
			placement(`{resourceSelectors: [{apiGroup: acme.io, kind: Cache}], clusters: {names: [eu-1]}}`), known,
			[]string{"resourceSelectors[0]: the hub does not serve the kind Cache.acme.io: install its CustomResourceDefinition on the hub"},
		},
		"an object with a typo": {
			placement(`{resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: t3}], clusters: {names: [eu-1]}}`), known,
			[]string{"resourceSelectors[0]: there is no Widget.test.hanse.dev t3 in namespace shop: there are t1, t2"},
		},
		"a Secret, whose neighbours are not listed": {
			placement(`{resourceSelectors: [{kind: Secret, name: t3}], clusters: {names: [eu-1]}}`), known, []string{"resourceSelectors[0]: there is no Secret t3 in namespace shop"},
		},
		"all kinds that are not federated, at once": {
			placement(`{resourceSelectors: [{kind: Secret}, {apiGroup: test.hanse.dev, kind: Widget, name: t3}], references: [{apiGroup: apps, kind: Deployment, path: spec.a}], clusters: {names: [eu-1]}}`),
			lookup{unread: []string{"widgets", "deployments"}},
			[]string{"the hub may not list and watch Widget.test.hanse.dev (resourceSelectors[1]), Deployment.apps (references[0]): run hansectl federate widgets.test.hanse.dev deployments.apps, or add to the value federatedKinds of the chart hanse-hub: " +
				"{apiGroups: [apps], resources: [deployments]}, {apiGroups: [test.hanse.dev], resources: [widgets]}; with status: true, the hub also writes their status"},
		},
		"a kind that the hub reads in some namespaces, by a ClusterPlacement": {
			`{kind: ClusterPlacement, metadata: {name: new}, spec: {resourceSelectors: [{kind: Secret, name: t3}], clusters: {names: [eu-1]}}}`, lookup{unread: []string{"secrets"}}, nil,
		},
		"a lookup that fails": {
			placement(`{resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: t3}], clusters: {names: [eu-1]}}`), lookup{fails: errors.New("no answer")}, nil,
		},
		"an override rule": {
			`{kind: OverridePolicy, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: t3}],
				rules: [{name: large, clusters: {labelSelector: {matchLabels: {topology.kubernetes.io/region: euu}}}, mergePatch: {spec: {size: large}}}]}}`,
			known, []string{"rule large: no cluster has topology.kubernetes.io/region=euu: there are cn, eu", "resourceSelectors[0]: there is no Widget.test.hanse.dev t3 in namespace shop: there are t1, t2"},
		},
		"an override of a kind that the hub may not read": {
			`{kind: OverridePolicy, metadata: {namespace: shop, name: new}, spec: {resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: t3}], rules: [{name: a, mergePatch: {spec: {size: large}}}]}}`,
			lookup{unread: []string{"widgets"}, objects: known.objects}, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.lookup = tc.lookup
			answer := h.review(tc.policy, "")
			if !answer.Allowed {
				t.Fatalf("refused: %+v", answer.Result)
			}
			if diff := cmp.Diff(tc.want, answer.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
