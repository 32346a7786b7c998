package preview

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/decide/decidetest"
	"github.com/hanse-dev/hanse/placement/guard"
)

func object(name string) decide.FleetObject {
	u := decidetest.Template(types.UID(name))
	u.SetName(name)
	u.Object["spec"] = map[string]any{"size": int64(3)}
	return decide.FleetObject{Object: u}
}

// fleet returns a fleet of the clusters eu, sg and us, with objects named web-0, web-1 and so on.
func fleet(objects int, placements ...*hubv1.Placement) decide.Fleet {
	f := decide.Fleet{Clusters: decidetest.Three(), Placements: decidetest.Only(placements...), Now: decidetest.Now}
	for i := range objects {
		f.Objects = append(f.Objects, object(fmt.Sprintf("web-%d", i)))
	}
	return f
}

func planned(t *testing.T, before, after decide.Fleet, o Options) Plan {
	t.Helper()
	p, err := Make(t.Context(), before, after, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheGuardJudgesTheRemovalsOfAPlan(t *testing.T) {
	t.Parallel()
	limited := func(copies int32) func(*hubv1.Placement) {
		return func(p *hubv1.Placement) { p.Spec.RemovalLimit = &hubv1.RemovalLimit{Copies: &copies} }
	}
	deleting := func(p *hubv1.Placement) { p.Spec.Deletion.WhenUnselected = hubv1.RemovalDelete }
	orphaning := func(p *hubv1.Placement) { p.Spec.Deletion.WhenUnselected = hubv1.RemovalOrphan }
	from := []func(*hubv1.Placement){decidetest.Named("eu", "sg"), deleting}
	tests := map[string]struct {
		objects int
		to      []func(*hubv1.Placement)
		options Options
		want    Guard
	}{
		"few copies go": {5, []func(*hubv1.Placement){decidetest.Named("sg"), deleting}, Options{}, Guard{Judged: 5}},
		"too many copies of a placement and of a cluster go": {
			6, []func(*hubv1.Placement){decidetest.Named("sg"), deleting}, Options{},
			Guard{Judged: 6, Held: []HeldSet{{"Placement shop/web", 6, []string{"6 of 6 copies on cluster eu, limit 5", "6 of 12 copies of Placement shop/web, limit 5"}}}},
		},
		"the placement has a limit of its own": {
			6, []func(*hubv1.Placement){decidetest.Named("sg"), deleting, limited(6)}, Options{RemovalLimit: guard.Limit{Copies: 10}}, Guard{Judged: 6},
		},
		"the last copy goes": {
			1, []func(*hubv1.Placement){decidetest.Named("none"), deleting}, Options{},
			Guard{Judged: 2, Held: []HeldSet{{"Placement shop/web", 2, []string{"the last copy of 1 object"}}}},
		},
		"copies that are left on the cluster are not judged": {6, []func(*hubv1.Placement){decidetest.Named("sg"), orphaning}, Options{}, Guard{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := fleet(tc.objects, decidetest.Policy("web", from...))
			after := before
			changed := decidetest.Policy("web", tc.to...)
			changed.Generation = 2
			after.Placements = decidetest.Only(changed)
			p := planned(t, before, after, tc.options)
			if diff := cmp.Diff(tc.want, p.Guard); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheGuardJudgesTheObjectsThatABundleLoses(t *testing.T) {
	t.Parallel()
	limited := func(p *hubv1.Placement) { p.Spec.RemovalLimit = &hubv1.RemovalLimit{Copies: ptr.To[int32](20)} }
	empty := func(p *hubv1.Placement) { p.Spec.AllowEmpty = true }
	tests := map[string]struct {
		lost  int
		place []func(*hubv1.Placement)
		want  Guard
	}{
		"most objects": {8, nil, Guard{Judged: 16, Held: []HeldSet{{"Bundle shop/all", 16, []string{
			"16 of 20 copies of Bundle shop/all, limit 5", "the last copies of 8 objects", "8 of 15 copies on cluster eu, limit 5", "8 of 15 copies on cluster sg, limit 5",
		}}}}},
		"one object":                              {1, nil, Guard{Judged: 2, Held: []HeldSet{{"Bundle shop/all", 2, []string{"the last copy of 1 object"}}}}},
		"one object that may lose its last copy":  {1, []func(*hubv1.Placement){empty}, Guard{Judged: 2}},
		"many objects within the placement's own": {5, []func(*hubv1.Placement){empty, limited}, Guard{Judged: 10}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const own, bundled = 5, 10 // objects of the hub and of the bundle, under one placement
			selects := func(p *hubv1.Placement) {
				p.Spec.ResourceSelectors = append(p.Spec.ResourceSelectors, hubv1.ResourceSelector{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.BundleKind})
			}
			before := fleet(own+bundled, decidetest.Policy("web", append(tc.place, selects, decidetest.Named("eu", "sg"))...))
			of := hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "all"}}
			for i := own; i < own+bundled; i++ {
				before.Objects[i].Object.SetAnnotations(map[string]string{hubv1.BundleAnnotation: of.Annotation()})
			}
			after := before
			after.Objects = slices.Clone(before.Objects)
			for i := own; i < own+tc.lost; i++ {
				after.Objects[i].Removed = true
			}
			p := planned(t, before, after, Options{})
			if diff := cmp.Diff(tc.want, p.Guard); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(p.Removals) != tc.lost || p.Removals[0].Message != "the bundle no longer contains the object" {
				t.Errorf("the removals are %+v", p.Removals)
			}
		})
	}
}

func TestAPlanNamesWhatAdmissionRefusesAndWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	before := fleet(1, decidetest.Policy("web"))
	after := before
	invalid := decidetest.Policy("invalid", decidetest.Labelled("none"), func(p *hubv1.Placement) { p.Spec.Clusters = hubv1.ClusterSelection{Expression: "cluster.nam == 'eu'"} })
	system := decidetest.Policy("system", decidetest.Labelled("none"))
	system.Namespace = "kube-system"
	after.Placements = append(after.Placements, invalid, system)
	broken := decidetest.Excluding(decidetest.Naming("eu"))
	broken.Spec.Rules = []hubv1.OverrideRule{{Name: "r", Clusters: decidetest.Naming("eu"), Patches: []hubv1.PatchOperation{{Op: hubv1.PatchRemove, Path: "/spec/none"}}}}
	after.Overrides = decidetest.These(broken)
	changed := object("web-0")
	changed.Object.Object["spec"] = map[string]any{"size": int64(5)}
	after.Objects = []decide.FleetObject{changed}
	fits := func(u *unstructured.Unstructured) error {
		if size, _, _ := unstructured.NestedInt64(u.Object, "spec", "size"); size > 4 {
			return fmt.Errorf("spec.size: too large\nat most 4")
		}
		return nil
	}
	p := planned(t, before, after, Options{Fits: fits})
	var refused []string
	for _, r := range p.Refusals {
		refused = append(refused, r.Object.String())
	}
	if diff := cmp.Diff([]string{"Placement kube-system/system", "Placement shop/invalid", "Widget shop/web-0"}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	want := []Problem{
		{Object: Object{"example.com", "Widget", "shop", "web-0"}, Clusters: []string{"eu"}, Message: `OverridePolicy shop/x, rule "r": path /spec/none does not exist in the object: correct the path, or use null in a mergePatch, which accepts that the field is missing`},
		{Object: Object{"example.com", "Widget", "shop", "web-0"}, Clusters: []string{"sg", "us"}, Message: "the manifest does not fit the definition of its kind: spec.size: too large; at most 4"},
	}
	for i, problem := range p.Problems {
		p.Problems[i].Message, _, _ = strings.Cut(problem.Message, " in the object: correct it")
	}
	if diff := cmp.Diff(want, p.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestAPlanNotesThatPoliciesGoWithAnOlderTemplate(t *testing.T) {
	t.Parallel()
	staged := func(p *hubv1.Placement) {
		p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "all"}}}
	}
	marks := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "marks"}}
	marks.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "example.com", Kind: "Widget"}}
	marks.Spec.Rules = []hubv1.OverrideRule{{Name: "mark", Labels: map[string]string{"mark": "yes"}}}
	for name, tc := range map[string]struct {
		desired string
		edit    func(*decide.Fleet)
		want    []string
	}{
		"policies of an object that was rolled back": {
			"t1", func(f *decide.Fleet) { f.Overrides = decidetest.These(marks) },
			[]string{"Widget shop/web-0 was rolled back or undone: its clusters get the changed policies with the template of revision 1; " +
				"the plan shows them with the newest template"},
		},
		"policies of another object": {"t2", func(f *decide.Fleet) { f.Overrides = decidetest.These(marks) }, nil},
		"a template": {"t1", func(f *decide.Fleet) {
			changed := object("web-0")
			changed.Binding = f.Objects[0].Binding
			changed.Object.Object["spec"] = map[string]any{"size": int64(5)}
			f.Objects = []decide.FleetObject{changed}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := fleet(1, decidetest.Policy("web", staged))
			b := decidetest.Bound()
			for _, name := range []string{"eu", "sg", "us"} {
				b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent, Revision: 1})
			}
			b.Spec.ObjectRef.Name, b.Spec.ObjectRef.UID = "web-0", before.Objects[0].Object.GetUID()
			b.Spec.Rollout = &hubv1.BindingRollout{Revision: 1, Newest: 2, Phase: hubv1.RolloutRolledBack}
			b.Spec.Revisions = []hubv1.ObjectRevision{{Number: 1, Template: tc.desired, Policies: "p"}, {Number: 2, Template: "t2", Policies: "p"}}
			before.Objects[0].Binding = b
			after := before
			tc.edit(&after)
			p := planned(t, before, after, Options{})
			if diff := cmp.Diff(tc.want, p.Notes); diff != "" || p.Summary.Changed != 3 {
				t.Errorf("%d copies change; notes (-want +got):\n%s", p.Summary.Changed, diff)
			}
		})
	}
}

func TestAPlanNamesThePodsThatRestart(t *testing.T) {
	t.Parallel()
	restarting := func(p *hubv1.Placement) {
		p.Spec.References = []hubv1.ReferenceRule{{Path: "/spec/template", Restart: hubv1.RestartOnChange}}
	}
	ofConfig := func(p *hubv1.Placement) { p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}} }
	config := func(field string) decide.FleetObject {
		o := object("settings")
		o.Object.SetAPIVersion("v1")
		o.Object.SetKind("ConfigMap")
		o.Object.Object["data"] = map[string]any{"a": "x"}
		if field != "" {
			o.Object.Object[field] = map[string]any{"a": "y"}
		}
		return o
	}
	restarted := []Object{{"example.com", "Widget", "shop", "web-0"}}
	for name, tc := range map[string]struct {
		placement *hubv1.Placement
		field     string
		want      []Object
	}{
		"its content changes":            {decidetest.Policy("web", restarting), "data", restarted},
		"binary content comes":           {decidetest.Policy("web", restarting), "binaryData", restarted},
		"another field changes":          {decidetest.Policy("web", restarting), "other", nil},
		"the pods are on other clusters": {decidetest.Policy("web", restarting, decidetest.Named("us")), "data", nil},
		"the placement has no such rule": {decidetest.Policy("web"), "data", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := fleet(1, tc.placement, decidetest.Policy("settings", ofConfig, decidetest.Named("eu")))
			before.Objects[0].Object.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"volumes": []any{
				map[string]any{"name": "settings", "configMap": map[string]any{"name": "settings"}},
			}}}}
			after := before
			before.Objects = append(slices.Clone(before.Objects), config(""))
			after.Objects = append(slices.Clone(after.Objects), config(tc.field))
			changes := planned(t, before, after, Options{}).Changes
			if len(changes) != 1 || changes[0].Object.Kind != "ConfigMap" {
				t.Fatalf("the changes are %+v", changes)
			}
			if diff := cmp.Diff(tc.want, changes[0].Restarts); diff != "" {
				t.Errorf("pods that start anew (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPlanOfNothingIsEmpty(t *testing.T) {
	t.Parallel()
	f := fleet(3, decidetest.Policy("web"))
	if diff := cmp.Diff(Plan{Summary: Summary{Objects: 3}}, planned(t, f, f, Options{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatMovedSinceAPlanIsNamed(t *testing.T) {
	t.Parallel()
	f := fleet(2, decidetest.Policy("web"), decidetest.Policy("gone"))
	f.Objects[0].Binding = decidetest.Bound()
	objects := []Object{{"example.com", "Widget", "shop", "web-0"}, {"example.com", "Widget", "shop", "web-1"}}
	then := VersionsOf(f, objects)
	if moved := Moved(then, VersionsOf(f, objects)); len(moved) > 0 {
		t.Errorf("of the same fleet has moved: %v", moved)
	}
	now := fleet(2, decidetest.Policy("web", func(p *hubv1.Placement) { p.Generation = 4 }), decidetest.Policy("new"))
	now.Objects[0].Binding = f.Objects[0].Binding
	now.Objects[0].Object.SetResourceVersion("7")
	now.Objects[1].Object.SetUID("another")
	now.Clusters[0].Labels["tier"] = "gold"
	now.Clusters[1].Status.Conditions[0].Message = "since another time"
	now.Clusters[1].Status.Conditions[0].LastTransitionTime = metav1.NewTime(decidetest.Now)
	var got []string
	for _, d := range Moved(then, VersionsOf(now, objects)) {
		got = append(got, d.Object.String()+": "+d.What)
	}
	want := []string{
		"MemberCluster eu: labels, taints or facts changed", "Placement shop/gone: deleted", "Placement shop/new: created",
		"Placement shop/web: generation 4, was 1", "Widget shop/web-0: changed", "Widget shop/web-1: deleted and created again",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
