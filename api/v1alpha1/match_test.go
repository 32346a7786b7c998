package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// parse reads a YAML text strictly: unknown fields fail the test.
func parse[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func wantError(t *testing.T, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Fatalf("got error %v, want %q", err, words)
	}
}

func TestMatch(t *testing.T) {
	web := hubv1.SelectableObject{
		ObjectIdentity:  hubv1.ObjectIdentity{Group: "monitoring.coreos.com", Kind: "Prometheus", Namespace: "monitoring", Name: "web"},
		Labels:          map[string]string{"team": "a"},
		NamespaceLabels: map[string]string{"owner": "n"},
	}
	settings := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "monitoring", Name: "settings"}}
	tests := map[string]struct {
		object    hubv1.SelectableObject
		selectors string
		want      hubv1.Specificity
		wantErr   string
	}{
		"no selector selects nothing": {object: web, selectors: `[]`, want: hubv1.MatchesNot},
		"a kind":                      {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: Prometheus}]`, want: hubv1.MatchesKind},
		"another kind":                {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: Alertmanager}]`, want: hubv1.MatchesNot},
		"a kind of the same name in another group":    {object: web, selectors: `[{apiGroup: example.com, kind: Prometheus}]`, want: hubv1.MatchesNot},
		"a kind is written as it is":                  {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: prometheus}]`, want: hubv1.MatchesNot},
		"no group means the core group":               {object: settings, selectors: `[{kind: ConfigMap}]`, want: hubv1.MatchesKind},
		"no group does not mean every group":          {object: web, selectors: `[{kind: Prometheus}]`, want: hubv1.MatchesNot},
		"every kind of a group":                       {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: "*"}]`, want: hubv1.MatchesGroup},
		"every kind of another group":                 {object: web, selectors: `[{apiGroup: example.com, kind: "*"}]`, want: hubv1.MatchesNot},
		"a name":                                      {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: Prometheus, name: web}]`, want: hubv1.MatchesName},
		"another name":                                {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: Prometheus, name: we}]`, want: hubv1.MatchesNot},
		"a label":                                     {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: Prometheus, labelSelector: {matchLabels: {team: a}}}]`, want: hubv1.MatchesLabels},
		"another value of a label":                    {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: Prometheus, labelSelector: {matchLabels: {team: b}}}]`, want: hubv1.MatchesNot},
		"a label of every kind of a group":            {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: "*", labelSelector: {matchLabels: {team: a}}}]`, want: hubv1.MatchesLabels},
		"the namespace's labels are not the object's": {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: Prometheus, labelSelector: {matchLabels: {owner: n}}}]`, want: hubv1.MatchesNot},
		"a label that must not be there":              {object: settings, selectors: `[{kind: ConfigMap, labelSelector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}]`, want: hubv1.MatchesLabels},
		"an empty label selector is as wide as none":  {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: Prometheus, labelSelector: {}}]`, want: hubv1.MatchesKind},
		"an empty label selector of every kind":       {object: web, selectors: `[{apiGroup: monitoring.coreos.com, kind: "*", labelSelector: {}}]`, want: hubv1.MatchesGroup},
		"the narrowest of several counts, in whatever place": {object: web, selectors: `
- {apiGroup: monitoring.coreos.com, kind: "*"}
- {apiGroup: monitoring.coreos.com, kind: Prometheus, name: web}
- {apiGroup: monitoring.coreos.com, kind: Prometheus}
`, want: hubv1.MatchesName},
		"one of several is enough": {object: settings, selectors: `[{apiGroup: example.com, kind: Thing}, {kind: ConfigMap}]`, want: hubv1.MatchesKind},
		"an invalid selector is named by its index, even if another one matches": {
			object: settings, selectors: `[{kind: ConfigMap}, {kind: ConfigMap, labelSelector: {matchExpressions: [{key: a, operator: Sometimes}]}}]`,
			wantErr: `resourceSelectors[1].labelSelector: "Sometimes" is not a valid label selector operator`,
		},
		"an invalid selector for another kind does no harm": {
			object: settings, selectors: `[{kind: ConfigMap}, {kind: Secret, labelSelector: {matchExpressions: [{key: a, operator: Sometimes}]}}]`,
			want: hubv1.MatchesKind,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := hubv1.Match(parse[[]hubv1.ResourceSelector](t, tc.selectors), tc.object)
			if tc.wantErr != "" {
				wantError(t, err, tc.wantErr)
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestNarrowerSelectorsHaveTheHigherSpecificity(t *testing.T) {
	order := []hubv1.Specificity{hubv1.MatchesNot, hubv1.MatchesGroup, hubv1.MatchesKind, hubv1.MatchesLabels, hubv1.MatchesName}
	for i := range len(order) - 1 {
		if order[i] >= order[i+1] {
			t.Errorf("%d is not below %d", order[i], order[i+1])
		}
	}
	if order[0] != 0 {
		t.Error("no match is not the zero value")
	}
}

func TestInScope(t *testing.T) {
	object := func(namespace string, labels map[string]string) hubv1.SelectableObject {
		return hubv1.SelectableObject{
			ObjectIdentity: hubv1.ObjectIdentity{Group: "example.com", Kind: "Thing", Namespace: namespace, Name: "x"}, NamespaceLabels: labels,
		}
	}
	teamA := map[string]string{"team": "a"}
	tests := map[string]struct {
		policyNamespace string
		selected        string // namespaceSelector of the policy; empty: unset
		object          hubv1.SelectableObject
		want            bool
		wantErr         string
	}{
		"a namespaced policy speaks of its own namespace":               {policyNamespace: "a", object: object("a", nil), want: true},
		"a namespaced policy is silent about another namespace":         {policyNamespace: "a", object: object("b", nil)},
		"a namespaced policy is silent about cluster-scoped objects":    {policyNamespace: "a", object: object("", nil)},
		"a namespaced policy in kube-system speaks of it":               {policyNamespace: "kube-system", object: object("kube-system", nil), want: true},
		"a cluster-scoped policy speaks of cluster-scoped objects":      {object: object("", nil), want: true},
		"a namespaceSelector does not take cluster-scoped objects away": {selected: `{matchLabels: {team: a}}`, object: object("", nil), want: true},
		"without namespaceSelector it is silent about namespaced ones":  {object: object("a", teamA)},
		"{} selects every namespace":                                    {selected: `{}`, object: object("a", nil), want: true},
		"{} does not select kube-system":                                {selected: `{}`, object: object("kube-system", nil)},
		"{} does not select hanse-system":                               {selected: `{}`, object: object("hanse-system", nil)},
		"{} selects what only looks alike":                              {selected: `{}`, object: object("kubernetes", nil), want: true},
		"labels select the namespace":                                   {selected: `{matchLabels: {team: a}}`, object: object("a", teamA), want: true},
		"labels do not select another namespace":                        {selected: `{matchLabels: {team: b}}`, object: object("a", teamA)},
		"labels select kube-system if that is what they say":            {selected: `{matchLabels: {kubernetes.io/metadata.name: kube-system}}`, object: object("kube-system", map[string]string{"kubernetes.io/metadata.name": "kube-system"}), want: true},
		"an invalid selector is an error":                               {selected: `{matchExpressions: [{key: a, operator: In}]}`, object: object("a", nil), wantErr: "namespaceSelector: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var selected *metav1.LabelSelector
			if tc.selected != "" {
				selected = parse[*metav1.LabelSelector](t, tc.selected)
			}
			got, err := hubv1.InScope(tc.policyNamespace, selected, tc.object)
			if tc.wantErr != "" {
				wantError(t, err, tc.wantErr)
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestSelectableLabels(t *testing.T) {
	const region, zone = hubv1.RegionLabel, hubv1.ZoneLabel
	tests := map[string]struct {
		labels   map[string]string
		topology hubv1.ClusterTopology
		want     map[string]string
	}{
		"a cluster without labels or nodes has none":      {want: map[string]string{}},
		"labels are as they are":                          {labels: map[string]string{"a": "b"}, want: map[string]string{"a": "b"}},
		"region and zone come from the nodes":             {topology: hubv1.ClusterTopology{Region: "r", Zones: []string{"z"}}, want: map[string]string{region: "r", zone: "z"}},
		"a label on the MemberCluster comes first":        {labels: map[string]string{region: "mine", zone: "mine-1"}, topology: hubv1.ClusterTopology{Region: "r", Zones: []string{"z"}}, want: map[string]string{region: "mine", zone: "mine-1"}},
		"an empty label on the MemberCluster comes first": {labels: map[string]string{region: ""}, topology: hubv1.ClusterTopology{Region: "r"}, want: map[string]string{region: ""}},
		"several zones are no zone":                       {topology: hubv1.ClusterTopology{Region: "r", Zones: []string{"y", "z"}}, want: map[string]string{region: "r"}},
		"nodes that disagree give no region":              {topology: hubv1.ClusterTopology{Zones: []string{"z"}}, want: map[string]string{zone: "z"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}, Status: hubv1.MemberClusterStatus{Topology: tc.topology}}
			before := c.DeepCopy()
			got := c.SelectableLabels()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			got["changed"] = "by the caller"
			if diff := cmp.Diff(before, c); diff != "" {
				t.Errorf("the MemberCluster changed: %s", diff)
			}
		})
	}
}

func TestMaySelect(t *testing.T) {
	cluster := &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "north", Labels: map[string]string{"tier": "prod"}},
		Status:     hubv1.MemberClusterStatus{Topology: hubv1.ClusterTopology{Region: "eu"}},
	}
	by := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	tests := map[string]struct {
		selection hubv1.ClusterSelection
		want      bool
	}{
		"an empty selection selects every cluster":        {want: true},
		"a name selects its cluster":                      {selection: hubv1.ClusterSelection{Names: []string{"north", "south"}}, want: true},
		"other names do not":                              {selection: hubv1.ClusterSelection{Names: []string{"south"}}},
		"an excluded name comes before a name":            {selection: hubv1.ClusterSelection{Names: []string{"north"}, ExcludedNames: []string{"north"}}},
		"labels select":                                   {selection: hubv1.ClusterSelection{LabelSelector: by("tier", "prod")}, want: true},
		"derived labels select":                           {selection: hubv1.ClusterSelection{LabelSelector: by(hubv1.RegionLabel, "eu")}, want: true},
		"other labels do not":                             {selection: hubv1.ClusterSelection{LabelSelector: by("tier", "test")}},
		"a selector that cannot be read selects nothing":  {selection: hubv1.ClusterSelection{LabelSelector: by("tier", "not a label")}},
		"an expression is not asked: its answer may vary": {selection: hubv1.ClusterSelection{Expression: "false"}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.selection.MaySelect(cluster); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestSuspendsWrites(t *testing.T) {
	cluster := &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "north", Labels: map[string]string{"tier": "prod"}},
		Status:     hubv1.MemberClusterStatus{Topology: hubv1.ClusterTopology{Region: "eu"}},
	}
	tests := map[string]struct {
		suspend string
		unknown bool
		want    bool
		words   string
	}{
		"nothing said suspends nothing":                         {suspend: `{}`},
		"scheduling alone suspends no writes":                   {suspend: `{scheduling: true}`},
		"dispatching suspends every cluster":                    {suspend: `{dispatching: true}`, want: true},
		"a name suspends its cluster":                           {suspend: `{clusters: [south, north]}`, want: true},
		"a name suspends its cluster, though it is not known":   {suspend: `{clusters: [north]}`, unknown: true, want: true},
		"other names do not":                                    {suspend: `{clusters: [south]}`},
		"labels suspend a cluster":                              {suspend: `{clusterSelector: {matchLabels: {tier: prod}}}`, want: true, words: "clusters with tier=prod"},
		"a derived region suspends a cluster":                   {suspend: `{clusterSelector: {matchLabels: {topology.kubernetes.io/region: eu}}}`, want: true, words: "clusters with topology.kubernetes.io/region=eu"},
		"other labels do not":                                   {suspend: `{clusterSelector: {matchLabels: {tier: test}}}`, words: "clusters with tier=test"},
		"NotIn suspends a cluster without the label":            {suspend: `{clusterSelector: {matchExpressions: [{key: ring, operator: NotIn, values: [first]}]}}`, want: true, words: "clusters with ring notin (first)"},
		"names and labels add up":                               {suspend: `{clusters: [north], clusterSelector: {matchLabels: {tier: test}}}`, want: true, words: "clusters with tier=test"},
		"a selector of everything suspends every cluster":       {suspend: `{clusterSelector: {}}`, want: true, words: "every cluster"},
		"a selector suspends a cluster that is not known":       {suspend: `{clusterSelector: {matchLabels: {tier: test}}}`, unknown: true, want: true, words: "clusters with tier=test"},
		"a selector that cannot be read suspends every cluster": {suspend: `{clusterSelector: {matchLabels: {tier: not a label}}}`, want: true, words: "every cluster, because clusterSelector is invalid"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			suspend, c := parse[hubv1.SuspendPolicy](t, tc.suspend), cluster
			if tc.unknown {
				c = nil
			}
			if got := suspend.SuspendsWrites("north", c); got != tc.want {
				t.Errorf("got %t", got)
			}
			if got := suspend.SelectedClusters(); got != tc.words {
				t.Errorf("got %q, want %q", got, tc.words)
			}
		})
	}
}

func TestAllowedNamespaces(t *testing.T) {
	teamA := map[string]string{"team": "a"}
	tests := map[string]struct {
		allowed   string
		namespace string
		labels    map[string]string
		want      bool
		wantErr   string
	}{
		"All allows every namespace":                               {allowed: `{from: All}`, namespace: "a", want: true},
		"None allows no namespace":                                 {allowed: `{from: None}`, namespace: "a", labels: teamA},
		"None allows cluster-scoped objects":                       {allowed: `{from: None}`, want: true},
		"Selector allows cluster-scoped objects":                   {allowed: `{from: Selector, selector: {matchLabels: {team: a}}}`, want: true},
		"Selector allows a namespace with the labels":              {allowed: `{from: Selector, selector: {matchLabels: {team: a}}}`, namespace: "a", labels: teamA, want: true},
		"Selector refuses a namespace without them":                {allowed: `{from: Selector, selector: {matchLabels: {team: a}}}`, namespace: "a"},
		"Selector {} allows every namespace":                       {allowed: `{from: Selector, selector: {}}`, namespace: "a", want: true},
		"Selector without a selector allows nothing":               {allowed: `{from: Selector}`, namespace: "a", labels: teamA},
		"nothing said allows nothing":                              {allowed: `{}`, namespace: "a", labels: teamA},
		"a word of a later version allows nothing":                 {allowed: `{from: Sometimes}`, namespace: "a", labels: teamA},
		"a selector counts only if it is asked for":                {allowed: `{from: None, selector: {}}`, namespace: "a"},
		"an invalid selector is an error and allows nothing":       {allowed: `{from: Selector, selector: {matchExpressions: [{key: a, operator: In}]}}`, namespace: "a", wantErr: "allowedNamespaces.selector: "},
		"an invalid selector does not keep cluster-scoped objects": {allowed: `{from: Selector, selector: {matchExpressions: [{key: a, operator: In}]}}`, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse[hubv1.AllowedNamespaces](t, tc.allowed).Allows(tc.namespace, tc.labels)
			if tc.wantErr != "" {
				wantError(t, err, tc.wantErr)
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
