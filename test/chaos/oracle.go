package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Snapshot is the state of the hub at one time, without objects that are being deleted.
type Snapshot struct {
	// Clusters has the labels of each MemberCluster, with its region.
	Clusters   map[string]map[string]string
	Placements []hubv1.Placement
	Policies   []hubv1.OverridePolicy
	Bundles    []hubv1.Bundle
	Operators  []hubv1.FederatedOperator
	Objects    map[Key]*unstructured.Unstructured
	// Held has the copies on each member whose removal the hub holds until a user confirms it.
	Held map[string]map[Key]bool
}

// Copy is the part of an object that the oracle compares.
type Copy struct {
	// Content is data or spec, as encoding/json decodes it. Without the field note of Widgets, which a webhook sets.
	Content map[string]any
	// Owner is the UID of the hub object. Of an expected copy, it is empty for objects of bundles.
	Owner string
}

// Copies are the copies on each member.
type Copies map[string]map[Key]Copy

// Expected returns the copies that each member shall have in the end, with the newest content of each object. It
// understands only policies of the form that this package writes: clusters by labels, references by the name in
// spec.config, and merge patches for the clusters of a region.
func Expected(s *Snapshot) Copies {
	out := Copies{}
	for member, labels := range s.Clusters {
		out[member] = map[Key]Copy{}
		for _, p := range s.Placements {
			if selects(p.Spec.Clusters.LabelSelector, labels) {
				s.place(out[member], &p, labels)
			}
		}
		for _, o := range s.Operators { // its ClusterPlacement selects every cluster
			s.placeManifests(out[member], o.Spec.Manifests, "", labels)
		}
	}
	return out
}

// place adds the copies of one Placement for a cluster with these labels.
func (s *Snapshot) place(copies map[Key]Copy, p *hubv1.Placement, cluster map[string]string) {
	add := func(k Key, o *unstructured.Unstructured, owner string) {
		copies[k] = Copy{Content: s.override(k, content(o), cluster), Owner: owner}
	}
	for k, o := range s.Objects {
		if k.Namespace != p.Namespace || !slices.ContainsFunc(p.Spec.ResourceSelectors, func(r hubv1.ResourceSelector) bool {
			return r.Kind == k.Kind && selects(r.LabelSelector, o.GetLabels())
		}) {
			continue
		}
		add(k, o, string(o.GetUID()))
		if len(p.Spec.References) > 0 {
			name, _, _ := unstructured.NestedString(o.Object, "spec", "config")
			config := Key{Kind: "ConfigMap", Namespace: k.Namespace, Name: name}
			if o := s.Objects[config]; o != nil {
				add(config, o, string(o.GetUID()))
			}
		}
	}
	for _, b := range s.Bundles {
		if b.Namespace != p.Namespace || !slices.ContainsFunc(p.Spec.ResourceSelectors, func(r hubv1.ResourceSelector) bool { return r.Kind == hubv1.BundleKind }) {
			continue
		}
		s.placeManifests(copies, b.Spec.Manifests, b.Namespace, cluster)
	}
}

// placeManifests adds the objects of a bundle. namespace is that of objects without one. It leaves out objects of kinds
// that the oracle does not compare, such as definitions.
func (s *Snapshot) placeManifests(copies map[Key]Copy, manifests []runtime.RawExtension, namespace string, cluster map[string]string) {
	for _, m := range manifests {
		o := &unstructured.Unstructured{}
		if err := json.Unmarshal(m.Raw, &o.Object); err != nil {
			continue // the hub refuses such a manifest
		}
		k := Key{Kind: o.GetKind(), Namespace: cmp.Or(o.GetNamespace(), namespace), Name: o.GetName()}
		if _, compared := Kinds[k.Kind]; compared {
			copies[k] = Copy{Content: s.override(k, content(o), cluster)}
		}
	}
}

// override applies the rules of the object's namespace that select the cluster.
func (s *Snapshot) override(k Key, content map[string]any, cluster map[string]string) map[string]any {
	for _, p := range s.Policies {
		if p.Namespace != k.Namespace || !slices.ContainsFunc(p.Spec.ResourceSelectors, func(r hubv1.ResourceSelector) bool { return r.Kind == k.Kind }) {
			continue
		}
		for _, r := range p.Spec.Rules {
			if r.MergePatch == nil || (r.Clusters != nil && !selects(r.Clusters.LabelSelector, cluster)) {
				continue
			}
			var patch map[string]map[string]any
			if err := json.Unmarshal(r.MergePatch.Raw, &patch); err == nil {
				maps.Copy(content, patch[contentField(k.Kind)])
			}
		}
	}
	return content
}

func selects(s *metav1.LabelSelector, labels map[string]string) bool {
	if s == nil {
		return true
	}
	for key, value := range s.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func contentField(kind string) string {
	if kind == WidgetKind.Kind {
		return "spec"
	}
	return "data"
}

// content returns a deep copy of the compared part of an object, in the types of encoding/json.
func content(o *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	raw, err := json.Marshal(o.Object[contentField(o.GetKind())])
	if err == nil && json.Unmarshal(raw, &out) == nil && out != nil {
		delete(out, "note")
		return out
	}
	return map[string]any{}
}

// copyOf returns the compared part of an object on a member.
func copyOf(o *unstructured.Unstructured) Copy {
	owner := o.GetAnnotations()[hubv1.OwnerAnnotation]
	return Copy{Content: content(o), Owner: owner[strings.LastIndex(owner, "/")+1:]}
}

// Wrong is how a copy differs from the expected state of its member.
type Wrong string

// The differences.
const (
	Lost     Wrong = "lost"      // the copy is missing
	Extra    Wrong = "extra"     // the member should not have the copy
	Content  Wrong = "content"   // the copy has another content
	Owner    Wrong = "owner"     // the copy belongs to another hub object, such as an earlier one of the same name
	TooEarly Wrong = "too early" // the copy has a content that no user approved for its wave
)

// Difference is one copy on one member that is not as expected.
type Difference struct {
	Member string
	Key    Key
	Wrong  Wrong
	Detail string
}

func (d Difference) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s on %s: %s %s", d.Key, d.Member, d.Wrong, d.Detail))
}

// Compare returns the differences between the members and the state that they shall have, sorted. If approved is false,
// clusters behind the manual wave may also have earlier contents, but none that needs an approval and has none. Copies
// whose removal the hub holds may stay, with any content.
func Compare(s *Snapshot, have Copies, h *History, approved bool) []Difference {
	var out []Difference
	for member, want := range Expected(s) {
		add := func(k Key, w Wrong, format string, args ...any) {
			out = append(out, Difference{Member: member, Key: k, Wrong: w, Detail: fmt.Sprintf(format, args...)})
		}
		for k, w := range want {
			c, found := have[member][k]
			behind := k.Namespace == staged && member != Members[0]
			switch {
			case !found:
				add(k, Lost, "")
			case w.Owner != "" && c.Owner != w.Owner:
				add(k, Owner, "has %s, want %s", c.Owner, w.Owner)
			case behind && !approved && h.Early(k, c.Content):
				add(k, TooEarly, "has %v, which nobody approved", c.Content)
			case behind && !approved && h.Wrote(k, c.Content):
			case !reflect.DeepEqual(c.Content, w.Content):
				add(k, Content, "has %v, want %v", c.Content, w.Content)
			}
		}
		for k := range have[member] {
			if _, wanted := want[k]; !wanted && !s.Held[member][k] {
				add(k, Extra, "")
			}
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return cmp.Compare(a.String(), b.String()) })
	return out
}
