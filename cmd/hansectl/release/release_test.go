package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func stored(t *testing.T, r Release) []byte {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	if _, err := zipped.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(out.Bytes()))
}

func TestAReleaseIsReadFromItsSecret(t *testing.T) {
	t.Parallel()
	want := Release{
		Name: "hanse", Namespace: "hanse-system", Revision: 3, Values: map[string]any{"replicas": float64(1)},
		Chart: Chart{
			Metadata: map[string]any{"name": "hanse-hub"}, Templates: []File{{"templates/a.yaml", []byte("a: b")}},
			Defaults: map[string]any{"replicas": float64(2), "federatedKinds": []any{}}, Schema: []byte("{}"),
		},
	}
	got, err := Read(stored(t, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Value("replicas") != float64(1) || got.ChartName() != "hanse-hub" {
		t.Errorf("got the chart %s with %v", got.ChartName(), got.Value("replicas"))
	}
	for _, broken := range [][]byte{[]byte("%"), []byte("YQ=="), nil} {
		if _, err := Read(broken); err == nil {
			t.Errorf("%q is read", broken)
		}
	}
}

func TestKindsAreAddedToTheEntriesThatLackThem(t *testing.T) {
	t.Parallel()
	deployments, configmaps := Wanted{Kind{"apps", "deployments"}, true}, Wanted{Kind{"", "configmaps"}, false}
	limited := Entry{APIGroups: []string{""}, Resources: []string{"configmaps"}, Namespaces: []string{"shop"}}
	tests := map[string]struct {
		entries []Entry
		kinds   []Wanted
		want    []Entry
		added   []Wanted
	}{
		"no entries yet": {
			nil, []Wanted{deployments, configmaps, {Kind{"apps", "statefulsets"}, true}},
			[]Entry{{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets"}, Status: true}, {APIGroups: []string{""}, Resources: []string{"configmaps"}}},
			[]Wanted{deployments, configmaps, {Kind{"apps", "statefulsets"}, true}},
		},
		"kinds that are there": {
			[]Entry{{APIGroups: []string{"apps", ""}, Resources: []string{"deployments", "configmaps"}, Status: true}}, []Wanted{deployments, configmaps},
			[]Entry{{APIGroups: []string{"apps", ""}, Resources: []string{"deployments", "configmaps"}, Status: true}}, nil,
		},
		"a kind without its status": {
			[]Entry{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}}}, []Wanted{deployments},
			[]Entry{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}}, {APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Status: true}}, []Wanted{deployments},
		},
		"a kind of some namespaces": {
			[]Entry{limited}, []Wanted{configmaps}, []Entry{limited, {APIGroups: []string{""}, Resources: []string{"configmaps"}}}, []Wanted{configmaps},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, added := With(tc.entries, tc.kinds)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.added, added); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEntriesAreReadFromValues(t *testing.T) {
	t.Parallel()
	got, err := ReadEntries([]any{map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments"}, "status": true}})
	if diff := cmp.Diff([]Entry{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Status: true}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := ReadEntries("all"); err == nil {
		t.Error("a text is read")
	}
}
