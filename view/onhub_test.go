//go:build !race

package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/test/operators"
	"github.com/hanse-dev/hanse/view/wire"
)

// operated is one object of an operator in three regions. It lists the data that an experienced user of the operator
// cannot find on the hub, each with a good reason.
type operated struct {
	Object map[string]any `json:"object"`
	// Status and Children are those of a cluster in the normal state. Clusters has the fields that differ between the
	// clusters.
	Status   map[string]any            `json:"status"`
	Children []member.Child            `json:"children"`
	Clusters map[string]map[string]any `json:"clusters"`
	// Failing has the children of the troubled cluster while its operator reports a failure, and the fields of its status
	// that differ then.
	Failing struct {
		Status   map[string]any `json:"status"`
		Children []member.Child `json:"children"`
	} `json:"failing"`
	// Missing is the data that the hub object lacks in every state. MissingAway is the data that the hub object also lacks
	// while a cluster is unreachable. The hub object has every other field and column of the members.
	Missing     missing `json:"missing"`
	MissingAway missing `json:"missingAway"`
}

// missing has the data that the hub object lacks, with the reasons.
type missing struct {
	Fields  map[string]string `json:"fields"`
	Columns map[string]string `json:"columns"`
}

// troubled is the cluster that is unreachable or fails in some states. The other clusters do not change.
const troubled = "cn-sha-1"

var regionOf = map[string]string{"ap-sin-1": "ap-southeast-1", "cn-sha-1": "cn-shanghai", "eu-fra-1": "eu-central-1"}

var (
	placed    = now.Add(-12*24*time.Hour - time.Hour) // when all clusters had the object
	trouble   = now.Add(-time.Hour - 10*time.Second)  // when the trouble began
	unreached = "https://cn-sha-1.example.com:6443 does not answer within 10s: check the address, the network in between and that its API server runs"
)

// The states of the clusters.
const (
	up    = "all clusters are up"
	gone  = "one cluster has been unreachable for an hour"
	fails = "the operator of one cluster reports a failure"
)

// onHub has the hub's data about the object in one state.
type onHub struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	object   *unstructured.Unstructured
	binding  *hubv1.ResourceBinding
	members  []hubv1.MemberCluster
	children map[string][]wire.ObjectChildren
	notes    []string
	seen     []map[string]any // statuses of the members
}

func TestWhatAUserSeesOfAnOperatorOnTheHub(t *testing.T) {
	files, err := filepath.Glob("testdata/onhub/*.yaml")
	if err != nil || len(files) != 6 {
		t.Fatalf("%d operators, want 6: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var o operated
			if err := yaml.UnmarshalStrict(text, &o); err != nil {
				t.Fatal(err)
			}
			var shown bytes.Buffer
			well, reported := o.start(t), map[string]bool{}
			for _, state := range []string{up, gone, fails} {
				hub := o.start(t)
				switch state {
				case gone:
					hub.lose(t)
				case fails:
					hub.fail(t, o)
				}
				fmt.Fprintf(&shown, "### %s\n\n", state)
				hub.show(t, &shown)
				t.Run(state, func(t *testing.T) {
					o.complete(t, hub, state, reported)
					if state != up {
						hub.tells(t, well)
					}
				})
			}
			for field := range o.Missing.Fields {
				if !reported[field] {
					t.Errorf("no cluster reports status.%s, which is said to be missing", field)
				}
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", strings.TrimSpace(shown.String())+"\n")
		})
	}
}

// on returns the status of the object on a cluster, with some values replaced.
func (o operated) on(t *testing.T, cluster string, other map[string]any) map[string]any {
	t.Helper()
	status := maps.Clone(o.Status)
	maps.Copy(status, o.Clusters[cluster])
	maps.Copy(status, other)
	return whole(t, status)
}

// start returns the hub after all clusters have reported.
func (o operated) start(t *testing.T) *onHub {
	t.Helper()
	hub := &onHub{object: &unstructured.Unstructured{Object: whole(t, o.Object)}, children: map[string][]wire.ObjectChildren{}}
	hub.object.SetUID("u1")
	hub.crd = operators.Definition(t, hub.object.GroupVersionKind().GroupKind())
	id := hubv1.IdentityOf(hub.object)
	hub.binding = &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, Generation: 1}}
	hub.binding.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: hub.object.GetAPIVersion(), Kind: id.Kind, Name: id.Name, UID: "u1"}
	hub.binding.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: id.Namespace, Name: "regions", UID: "p1", Generation: 1}
	facts := map[string]rollup.Fact{}
	for _, name := range slices.Sorted(maps.Keys(o.Clusters)) {
		hub.binding.Spec.Clusters = append(hub.binding.Spec.Clusters, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
		facts[name] = hub.observed(t, name, o.on(t, name, nil))
		observed := metav1.NewTime(now.Add(-20 * time.Second))
		m := hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Status.Topology.Region, m.Status.LastObservedTime = regionOf[name], &observed
		m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: hubv1.ReasonConnected, LastTransitionTime: metav1.NewTime(placed)}}
		hub.members = append(hub.members, m)
		hub.children[name] = []wire.ObjectChildren{{Object: wire.ObjectOf(id), Children: o.Children}}
	}
	hub.report(t, facts, placed)
	return hub
}

// lose makes the troubled cluster unreachable.
func (h *onHub) lose(t *testing.T) {
	t.Helper()
	h.report(t, map[string]rollup.Fact{troubled: {LinkReason: hubv1.ReasonUnreachable, LinkMessage: unreached, LastObserved: trouble}}, trouble.Add(40*time.Second))
	for i := range h.members {
		if m := &h.members[i]; m.Name == troubled {
			observed := metav1.NewTime(trouble)
			m.Status.LastObservedTime = &observed
			m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable, Message: unreached, LastTransitionTime: observed}}
		}
	}
	delete(h.children, troubled)
	h.notes = []string{troubled + ": the cluster is not connected: see hansectl clusters"} // the answer of hub/views
}

// fail makes the operator of the troubled cluster report a failure.
func (h *onHub) fail(t *testing.T, o operated) {
	t.Helper()
	h.report(t, map[string]rollup.Fact{troubled: h.observed(t, troubled, o.on(t, troubled, o.Failing.Status))}, trouble)
	h.children[troubled][0].Children = o.Failing.Children
}

// observed returns the report of a connected cluster that has the object, and whose operator wrote this status.
func (h *onHub) observed(t *testing.T, name string, status map[string]any) rollup.Fact {
	t.Helper()
	h.seen = append(h.seen, status)
	copied := h.object.DeepCopy()
	copied.Object["status"] = status
	verdict := health.Assess(copied, health.ReadConventions(h.crd, h.version()))
	state := member.CopyState{UID: types.UID("copy-on-" + name), ResourceVersion: "7", Digest: "d1"}
	return rollup.Fact{
		Connected: true, Synced: true,
		Outcome: &member.Outcome{
			Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, CopyState: state,
			HubState: member.HubState{HubGeneration: h.object.GetGeneration()},
		},
		Observation: &member.Observation{
			CopyState: state, OwnerUID: h.object.GetUID(), Observed: health.Project(schema.GroupKind{}, status),
			Assessment: member.Assessment{Health: verdict.Health, HealthReason: verdict.Reason, HealthMessage: verdict.Message},
		},
	}
}

func (h *onHub) version() string { return h.object.GroupVersionKind().Version }

// report computes the rows and writes the merged status, as the hub does.
func (h *onHub) report(t *testing.T, facts map[string]rollup.Fact, at time.Time) {
	t.Helper()
	var rows []hubv1.ClusterRow
	h.binding.Status, rows = rollup.Status(h.binding.Status, rollup.Input{
		Targets: h.binding.Spec.Clusters, BindingGeneration: 1, ObjectUID: h.object.GetUID(), HubGeneration: h.object.GetGeneration(), Facts: facts, Now: metav1.NewTime(at),
	})
	schema, subresource, err := rollup.NewSchema(h.crd, h.version())
	if err != nil {
		t.Fatal(err)
	}
	written := metav1.Condition{Type: hubv1.ConditionStatusWritten, LastTransitionTime: metav1.NewTime(at)}
	if !subresource {
		written.Status, written.Reason = metav1.ConditionFalse, hubv1.ReasonNoStatusSubresource
		written.Message = fmt.Sprintf("the hub's CustomResourceDefinition of %s has no status subresource at %s", h.object.GroupVersionKind().GroupKind(), h.object.GetAPIVersion())
		meta.SetStatusCondition(&h.binding.Status.Conditions, written)
		return
	}
	status, left, err := rollup.MergeStatus(schema, rollup.Rules{}, h.object, rows, h.binding.Spec.Clusters, metav1.NewTime(at))
	if err != nil {
		t.Fatal(err)
	}
	h.object.Object["status"] = whole(t, status)
	written.Status, written.Reason = metav1.ConditionTrue, hubv1.ReasonWritten
	if len(left) > 0 {
		written.Message = leftOut + strings.Join(left, ", ")
	}
	meta.SetStatusCondition(&h.binding.Status.Conditions, written)
}

// show writes the commands of a user, each with its output.
func (h *onHub) show(t *testing.T, w io.Writer) {
	t.Helper()
	name, in := h.crd.Spec.Names.Singular+" "+h.object.GetName(), " -n "+h.object.GetNamespace()
	fmt.Fprintf(w, "$ kubectl get %s%s\n", name, in)
	h.get(t, w, false)
	fmt.Fprintf(w, "\n$ kubectl get %s%s -o wide\n", name, in)
	h.get(t, w, true)
	if status, ok := h.object.Object["status"]; ok {
		text, err := yaml.Marshal(map[string]any{"status": status})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "\n$ kubectl get %s%s -o yaml | yq '{\"status\": .status}'\n%s", name, in, text)
	}
	fmt.Fprintf(w, "\n$ hansectl status %s%s\n", name, in)
	h.status().Write(w, now)
	fmt.Fprintf(w, "\n$ hansectl status %s%s -o wide\n", name, in)
	h.status().WriteWide(w, now)
	fmt.Fprintf(w, "\n$ hansectl tree regions%s\n", in)
	h.tree().Write(w, now)
	fmt.Fprintln(w)
}

func (h *onHub) status() Status {
	return Of(StatusInput{ID: hubv1.IdentityOf(h.object), Object: h.object, Binding: h.binding, Members: h.members, Now: now})
}

func (h *onHub) tree() Tree {
	ref := h.binding.Spec.PlacementRef
	tree := TreeOf(PlacementName{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}, []hubv1.BindingObject{h.binding}, nil, 50)
	for name, found := range h.children {
		tree.Grow(name, found)
	}
	tree.Notes = h.notes
	return tree
}

// table returns the table that the API server makes with the printer columns of the definition.
func (h *onHub) table(t *testing.T) *metav1.Table {
	t.Helper()
	i := slices.IndexFunc(h.crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == h.version() })
	convertor, err := tableconvertor.New(h.crd.Spec.Versions[i].AdditionalPrinterColumns)
	if err != nil {
		t.Fatal(err)
	}
	printed := h.object.DeepCopy()
	// The time is shifted, because the library computes ages by the real clock.
	printed.SetCreationTimestamp(metav1.NewTime(time.Now().Add(placed.Sub(now))))
	table, err := convertor.ConvertToTable(t.Context(), printed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func (h *onHub) get(t *testing.T, w io.Writer, wide bool) {
	t.Helper()
	if err := printers.NewTablePrinter(printers.PrintOptions{Wide: wide}).PrintObj(h.table(t), w); err != nil {
		t.Fatal(err)
	}
}

// complete fails the test if the hub object lacks data that an experienced user of the operator needs, or has data that
// is listed as missing. It adds the fields that the members report to reported.
func (o operated) complete(t *testing.T, h *onHub, state string, reported map[string]bool) {
	t.Helper()
	fields, columns := maps.Clone(o.Missing.Fields), map[string]string{}
	maps.Copy(columns, o.Missing.Columns)
	if state == gone {
		maps.Copy(fields, o.MissingAway.Fields)
		maps.Copy(columns, o.MissingAway.Columns)
	}
	merged, _, _ := unstructured.NestedMap(h.object.Object, "status")
	conditions := conditionTypes(merged)
	here := map[string]bool{}
	for _, seen := range h.seen {
		for field := range seen {
			here[field], reported[field] = true, true
		}
		for _, c := range conditionTypes(seen) {
			if !slices.Contains(conditions, c) {
				t.Errorf("the hub object lacks the condition %s", c)
			}
		}
	}
	for _, field := range slices.Sorted(maps.Keys(here)) {
		_, there := merged[field]
		if why, lacks := fields[field]; there == lacks {
			t.Errorf("status.%s of the hub object is %v; the reason to lack it is %q", field, merged[field], why)
		}
	}
	if healthy := hubv1.ConditionObjectHealthy; merged != nil && !slices.Contains(conditions, healthy) {
		t.Errorf("the hub object lacks the condition %s", healthy)
	}
	table := h.table(t)
	for i, column := range table.ColumnDefinitions {
		cell := table.Rows[0].Cells[i]
		if why, lacks := columns[column.Name]; (cell == nil || cell == "") != lacks {
			t.Errorf("column %s of kubectl get is %v; the reason to lack it is %q", column.Name, cell, why)
		}
	}
}

// tells fails the test if the output of the commands does not show which cluster is in trouble, since when and why.
func (h *onHub) tells(t *testing.T, well *onHub) {
	t.Helper()
	var before, after bytes.Buffer
	well.get(t, &before, false)
	h.get(t, &after, false)
	if _, merged := h.object.Object["status"]; merged && before.String() == after.String() {
		t.Errorf("kubectl get shows no trouble:\n%s", after.String())
	}
	for _, row := range h.status().Clusters {
		bad := row.Health != hubv1.HealthHealthy
		if bad != (row.Cluster == troubled) {
			t.Errorf("hansectl status says of %s: %s", row.Cluster, row.Health)
		}
		if bad && (row.Reason == "" || row.Message == "" || row.LastTransitionTime == nil || now.Sub(row.LastTransitionTime.Time) > 2*time.Hour) {
			t.Errorf("hansectl status does not say of %s since when or why: %+v", row.Cluster, row)
		}
	}
	for _, o := range h.tree().Objects {
		for _, c := range o.Clusters {
			if c.Cluster == troubled && (c.Reason == "" || c.Message == "") {
				t.Errorf("hansectl tree does not say why %s is %s", c.Cluster, c.Health)
			}
		}
	}
}

func conditionTypes(status map[string]any) (out []string) {
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, c := range conditions {
		out = append(out, fmt.Sprint(c.(map[string]any)["type"]))
	}
	return out
}

// whole returns a copy of a map with integers instead of floats, as an API server returns them.
func whole(t *testing.T, in map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return integers(out).(map[string]any)
}
