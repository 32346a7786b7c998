package chaos

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	common  = Key{"ConfigMap", everywhere, "o-0"}
	sized   = Key{"Widget", everywhere, "o-1"}
	prod    = Key{"ConfigMap", selected, "o-0"}
	naming  = Key{"Widget", referring, "o-0"}
	named   = Key{"ConfigMap", referring, "config-2"}
	unnamed = Key{"ConfigMap", referring, "config-1"}
	inWaves = Key{"ConfigMap", staged, "o-0"}
	limited = Key{"ConfigMap", guarded, "o-0"}
)

// hubState returns a hub with one object of each form. member-1 is not in tier prod, member-2 not in ring a, and
// member-3 has an override.
func hubState(t *testing.T) *Snapshot {
	t.Helper()
	s := &Snapshot{Clusters: map[string]map[string]string{}, Objects: map[Key]*unstructured.Unstructured{}, Held: map[string]map[Key]bool{}}
	for i, m := range Members {
		s.Clusters[m] = map[string]string{regionLabel: regionOf(m), tierLabel: []string{"dev", "prod", "prod"}[i], ringLabel: []string{"a", "b", "a"}[i]}
		s.Held[m] = map[Key]bool{}
	}
	for _, p := range placements() {
		s.Placements = append(s.Placements, *p)
	}
	for _, k := range []Key{common, sized, prod, naming, named, unnamed, inWaves, limited} {
		config := ""
		if k == naming {
			config = named.Name
		}
		s.Objects[k] = object(k, 7, config)
		s.Objects[k].SetUID(types.UID("uid of " + k.String()))
	}
	r := &run{expected: expected{regions: map[string]int64{regionOf(Members[2]): 5}}}
	var policy hubv1.OverridePolicy
	convert(t, r.policy(), &policy)
	var bundle hubv1.Bundle
	convert(t, bundleOf([]Key{bundleKey(0), bundleKey(1)}, 7), &bundle)
	gadgets, err := os.ReadFile("testdata/gadget.yaml")
	if err != nil {
		t.Fatal(err)
	}
	made, err := operatorOf(gadgets, 7)
	if err != nil {
		t.Fatal(err)
	}
	var operator hubv1.FederatedOperator
	convert(t, made, &operator)
	s.Policies, s.Bundles, s.Operators = []hubv1.OverridePolicy{policy}, []hubv1.Bundle{bundle}, []hubv1.FederatedOperator{operator}
	return s
}

func convert(t *testing.T, from *unstructured.Unstructured, to any) {
	t.Helper()
	raw, err := from.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheOracleExpectsEachObjectWhereThePoliciesSendIt(t *testing.T) {
	want := map[string][]string{
		"member-1": {common.String(), sized.String(), naming.String(), named.String(), inWaves.String(), limited.String(), bundleKey(0).String(), bundleKey(1).String(), settingsKey.String()},
		"member-2": {common.String(), sized.String(), prod.String(), naming.String(), named.String(), inWaves.String(), bundleKey(0).String(), bundleKey(1).String(), settingsKey.String()},
		"member-3": {common.String(), sized.String(), prod.String(), naming.String(), named.String(), inWaves.String(), limited.String(), bundleKey(0).String(), bundleKey(1).String(), settingsKey.String()},
	}
	got := Expected(hubState(t))
	for member, keys := range want {
		var have []string
		for k := range got[member] {
			have = append(have, k.String())
		}
		slices.Sort(have)
		slices.Sort(keys)
		if !slices.Equal(have, keys) {
			t.Errorf("%s: expects %v, want %v", member, have, keys)
		}
	}
	for member, replicas := range map[string]float64{"member-1": 1, "member-3": 5} {
		if n := got[member][sized].Content["replicas"]; n != replicas {
			t.Errorf("%s: expects %v replicas, want %v", member, n, replicas)
		}
	}
}

// TestTheOracleFindsEachWrongMember breaks one thing on members that are as expected.
func TestTheOracleFindsEachWrongMember(t *testing.T) {
	for name, tc := range map[string]struct {
		breaks   func(s *Snapshot, have Copies, h *History)
		approved bool
		want     string // empty if there is no difference
	}{
		"nothing is broken":          {breaks: func(*Snapshot, Copies, *History) {}, approved: true},
		"a copy is missing":          {breaks: func(_ *Snapshot, have Copies, _ *History) { delete(have["member-2"], common) }, want: "lost"},
		"a copy of a Bundle is lost": {breaks: func(_ *Snapshot, have Copies, _ *History) { delete(have["member-2"], bundleKey(1)) }, want: "lost"},
		"an operator has an old value": {breaks: func(_ *Snapshot, have Copies, _ *History) {
			have["member-2"][settingsKey] = Copy{Content: map[string]any{"value": "6"}}
		}, want: "content"},
		"a reference did not follow":   {breaks: func(_ *Snapshot, have Copies, _ *History) { delete(have["member-2"], named) }, want: "lost"},
		"a copy is not selected":       {breaks: func(_ *Snapshot, have Copies, _ *History) { have["member-1"][prod] = Copy{} }, want: "extra"},
		"a copy has no hub object":     {breaks: func(s *Snapshot, _ Copies, _ *History) { delete(s.Objects, limited) }, want: "extra"},
		"a member that is not known":   {breaks: func(_ *Snapshot, have Copies, _ *History) { delete(have, "member-3") }, want: "lost"},
		"a copy of an earlier content": {breaks: func(s *Snapshot, _ Copies, _ *History) { rewrite(s, common) }, want: "content"},
		"an override is not applied":   {breaks: func(s *Snapshot, have Copies, _ *History) { have["member-3"][sized] = have["member-1"][sized] }, want: "content"},
		"a copy of an earlier object of the same name": {
			breaks: func(s *Snapshot, _ Copies, _ *History) { s.Objects[common].SetUID("new") }, want: "owner",
		},
		"a held copy may stay": {
			breaks: func(s *Snapshot, have Copies, _ *History) {
				s.Held["member-2"][limited], have["member-2"][limited] = true, Copy{}
			},
		},
		"a copy stays, and is held on another member only": {
			breaks: func(s *Snapshot, have Copies, _ *History) {
				s.Held["member-1"][limited], have["member-2"][limited] = true, Copy{}
			},
			want: "extra",
		},
		"a wave that was not approved has the old content": {breaks: func(s *Snapshot, have Copies, h *History) {
			rewrite(s, inWaves)
			have["member-1"][inWaves] = Copy{Content: content(s.Objects[inWaves]), Owner: have["member-1"][inWaves].Owner}
			h.Write(inWaves, 8, time.Unix(200, 0), false)
		}},
		"the first wave needs no approval, and has the old content": {breaks: func(s *Snapshot, _ Copies, h *History) {
			rewrite(s, inWaves)
			h.Write(inWaves, 8, time.Unix(200, 0), false)
		}, want: "content"},
		"a wave that was not approved has the new content": {breaks: func(s *Snapshot, have Copies, h *History) {
			rewrite(s, inWaves)
			for _, m := range Members {
				have[m][inWaves] = Copy{Content: content(s.Objects[inWaves]), Owner: have[m][inWaves].Owner}
			}
			h.Approve(time.Unix(150, 0)) // before the edit
			h.Write(inWaves, 8, time.Unix(200, 0), false)
		}, want: "too early"},
		"the new content may be the first revision": {breaks: func(s *Snapshot, have Copies, h *History) {
			rewrite(s, inWaves)
			for _, m := range Members {
				have[m][inWaves] = Copy{Content: content(s.Objects[inWaves]), Owner: have[m][inWaves].Owner}
			}
			h.Write(inWaves, 8, time.Unix(200, 0), true)
		}},
		"a wave that was not approved has a content that nobody wrote": {breaks: func(_ *Snapshot, have Copies, _ *History) {
			have["member-2"][inWaves] = Copy{Content: map[string]any{"value": "drift"}, Owner: have["member-2"][inWaves].Owner}
		}, want: "content"},
		"everything is approved, and a wave has the old content": {breaks: func(s *Snapshot, have Copies, h *History) {
			rewrite(s, inWaves)
			have["member-1"][inWaves] = Copy{Content: content(s.Objects[inWaves]), Owner: have["member-1"][inWaves].Owner}
			h.Write(inWaves, 8, time.Unix(200, 0), false)
			h.Approve(time.Unix(300, 0))
		}, approved: true, want: "content"},
	} {
		t.Run(name, func(t *testing.T) {
			s, h := hubState(t), &History{}
			h.Write(inWaves, 7, time.Unix(100, 0), true)
			have := Copies{}
			for member, copies := range Expected(s) {
				have[member] = maps.Clone(copies)
			}
			tc.breaks(s, have, h)
			differences := Compare(s, have, h, tc.approved)
			if tc.want == "" && len(differences) > 0 {
				t.Errorf("found %v, want nothing", differences)
			}
			if tc.want != "" && !slices.ContainsFunc(differences, func(d Difference) bool { return string(d.Wrong) == tc.want }) {
				t.Errorf("found %v, want %s", differences, tc.want)
			}
		})
	}
}

// rewrite sets the content of an object, which is 7, to 8.
func rewrite(s *Snapshot, k Key) {
	uid := s.Objects[k].GetUID()
	s.Objects[k] = object(k, 8, "")
	s.Objects[k].SetUID(uid)
}

func TestADeletionNeedsAnEarlierCauseOfItsOwn(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	deletion := func(second int64, k Key) Deletion { return Deletion{At: at(second), Member: "member-1", Key: k} }
	for name, tc := range map[string]struct {
		causes    func(c *Causes)
		deletions []Deletion
		want      int // without a cause
	}{
		"the object was deleted": {
			causes: func(c *Causes) { c.Add(at(1), "", common, "") }, deletions: []Deletion{deletion(2, common)},
		},
		"nothing was done": {
			causes: func(*Causes) {}, deletions: []Deletion{deletion(2, common)}, want: 1,
		},
		"the cause came later": {
			causes: func(c *Causes) { c.Add(at(3), "", common, "") }, deletions: []Deletion{deletion(2, common)}, want: 1,
		},
		"another object was deleted": {
			causes: func(c *Causes) { c.Add(at(1), "", sized, "") }, deletions: []Deletion{deletion(2, common)}, want: 1,
		},
		"the label of another cluster was changed": {
			causes: func(c *Causes) { c.Add(at(1), "member-2", Key{Namespace: selected}, "") }, deletions: []Deletion{deletion(2, prod)}, want: 1,
		},
		"the label of the cluster was changed": {
			causes: func(c *Causes) { c.Add(at(1), "member-1", Key{Namespace: selected}, "") }, deletions: []Deletion{deletion(2, prod)},
		},
		"one cause, and two deletions of the same copy": {
			causes: func(c *Causes) { c.Add(at(1), "", common, "") }, deletions: []Deletion{deletion(2, common), deletion(4, common)}, want: 1,
		},
		"two causes, and two deletions of the same copy": {
			causes:    func(c *Causes) { c.Add(at(1), "", common, ""); c.Add(at(3), "", common, "") },
			deletions: []Deletion{deletion(4, common), deletion(2, common)},
		},
		"the cause belongs to the round before": {
			causes: func(c *Causes) { c.Add(at(1), "", common, ""); c.Clear() }, deletions: []Deletion{deletion(2, common)}, want: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c Causes
			tc.causes(&c)
			if got := c.Without(tc.deletions); len(got) != tc.want {
				t.Errorf("%v have no cause, want %d deletions", got, tc.want)
			}
		})
	}
}

func TestARowThatContradictsTheMemberIsALie(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(o *Observation, row *hubv1.ClusterRow)
		want   string
	}{
		"the row is true":         {change: func(*Observation, *hubv1.ClusterRow) {}},
		"the copy is missing":     {change: func(o *Observation, _ *hubv1.ClusterRow) { o.Copy = nil }, want: "the copy is missing"},
		"another copy":            {change: func(o *Observation, _ *hubv1.ClusterRow) { o.Copy.SetUID("new") }, want: "uid"},
		"another digest":          {change: func(_ *Observation, row *hubv1.ClusterRow) { row.Digest = "d2" }, want: "digest"},
		"an earlier content":      {change: func(o *Observation, _ *hubv1.ClusterRow) { o.Object = object(common, 8, "") }, want: "content"},
		"the row does not say it": {change: func(o *Observation, row *hubv1.ClusterRow) { o.Copy, row.Applied = nil, metav1.ConditionFalse }},
		"the row is not of now":   {change: func(o *Observation, row *hubv1.ClusterRow) { o.Copy, row.LastObservedTime = nil, &metav1.Time{} }},
		"the decision is newer":   {change: func(o *Observation, _ *hubv1.ClusterRow) { o.Copy, o.Binding.Generation = nil, 2 }},
		"the copy is to leave": {change: func(o *Observation, _ *hubv1.ClusterRow) {
			o.Copy, o.Binding.Spec.Clusters[0].State = nil, hubv1.TargetAbsent
		}},
		"an object of a Bundle":     {change: func(o *Observation, _ *hubv1.ClusterRow) { o.Object = nil }},
		"a Bundle's copy is absent": {change: func(o *Observation, _ *hubv1.ClusterRow) { o.Object, o.Copy = nil, nil }, want: "the copy is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observation{Member: "member-1", Object: object(common, 7, ""), Copy: object(common, 7, "")}
			o.Copy.SetUID("copy")
			o.Copy.SetAnnotations(map[string]string{hubv1.DigestAnnotation: "d1"})
			o.Binding = &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			o.Binding.Spec.Clusters = []hubv1.BindingTarget{{Name: o.Member, State: hubv1.TargetPresent}}
			o.Binding.Status.ObservedGeneration = 1
			o.Binding.Status.Clusters = []hubv1.ClusterRow{{Name: o.Member, UID: "copy", Digest: "d1", Applied: metav1.ConditionTrue}}
			tc.change(&o, &o.Binding.Status.Clusters[0])
			if got := Lie(o); !strings.Contains(got, tc.want) || (tc.want == "") != (got == "") {
				t.Errorf("the lie is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAUsageThatGrowsIsALeak(t *testing.T) {
	start := usage{Goroutines: 600, Heap: 40 << 20}
	for name, tc := range map[string]struct {
		end  usage
		leak bool
	}{
		"as before":        {end: start},
		"a little more":    {end: usage{Goroutines: 700, Heap: 60 << 20}},
		"more goroutines":  {end: usage{Goroutines: 900, Heap: 40 << 20}, leak: true},
		"more live memory": {end: usage{Goroutines: 600, Heap: 90 << 20}, leak: true},
	} {
		if err := Leaked(start, tc.end); (err != nil) != tc.leak {
			t.Errorf("%s: %v", name, err)
		}
	}
}
