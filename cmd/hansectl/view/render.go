package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/canonical"
	"github.com/hanse-dev/hanse/overrides"
	dividing "github.com/hanse-dev/hanse/replicas"
)

// RenderInput is everything that the manifests of one object depend on.
type RenderInput struct {
	// Object as it is on the hub, at the version that the hub prefers.
	Object *unstructured.Unstructured
	// OtherVersions are those at which clusters may get the object, see hubv1.HubObject.
	OtherVersions []string
	// Binding says which clusters have the object, and their shares; nil if nothing was decided.
	Binding *hubv1.BindingSpec
	// Policies are those that may speak of the object: which do is found out.
	Policies        []hubv1.OverridePolicyObject
	NamespaceLabels map[string]string
	// Clusters for which the object is rendered.
	Clusters []*hubv1.MemberCluster
	// DeniedMetadataPrefixes are the hub's, beside the built-in ones.
	DeniedMetadataPrefixes []string
}

// Renderings are the manifests of one object, as `render` shows them.
type Renderings struct {
	Object   Object      `json:"object"`
	Clusters []Rendering `json:"clusters"`
}

// Rendering is the manifest for one cluster, or why there is none.
type Rendering struct {
	Cluster string `json:"cluster"`
	// Manifest that the hub applies, without its marks.
	Manifest map[string]any `json:"manifest,omitempty"`
	// Applied rules, the lowest rank first.
	Applied []RenderedRule `json:"applied,omitempty"`
	// Skipped rules have a test that is not met, the lowest rank first.
	Skipped []SkippedRule `json:"skipped,omitempty"`
	// Divided numbers are this cluster's share.
	Divided []DividedNumber `json:"divided,omitempty"`
	// Excluded says which rule keeps the object out of the cluster.
	Excluded string `json:"excluded,omitempty"`
	// Error says why the hub would not write the object.
	Error string `json:"error,omitempty"`
}

// RenderedRule is a rule of an override policy.
type RenderedRule struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule"`
}

// String reads `OverridePolicy shop/a, rule "r"`.
func (r RenderedRule) String() string { return fmt.Sprintf("%s, rule %q", r.Policy, r.Rule) }

// SkippedRule is a rule that was left out.
type SkippedRule struct {
	RenderedRule `json:",inline"`
	// Path of the test.
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// DividedNumber is a number that the division of replicas decides.
type DividedNumber struct {
	Path   string `json:"path"`
	Number int64  `json:"number"`
}

// Render makes the manifests by the functions by which the hub does, in the order of the clusters' names.
func Render(in RenderInput) Renderings {
	gvk := in.Object.GroupVersionKind()
	id := hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: in.Object.GetNamespace(), Name: in.Object.GetName()}
	out := Renderings{Object: objectOf(id, in.Object)}
	object := hubv1.SelectableObject{ObjectIdentity: id, Labels: in.Object.GetLabels(), NamespaceLabels: in.NamespaceLabels}
	r := renderer{in: in}
	r.excluded, r.err = overrides.ExclusionsOf(in.Policies, object)
	if r.err == nil {
		r.matching, r.err = overrides.Matching(in.Policies, object)
	}
	for _, c := range in.Clusters {
		out.Clusters = append(out.Clusters, r.render(c))
	}
	slices.SortFunc(out.Clusters, func(a, b Rendering) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// Digests by cluster are those of what the hub would send now, as far as that can be known outside of the hub: those of
// Secrets are keyed. What a cluster has no fields for, and prefixes of metadata that the hub leaves out by a flag, are
// taken for sent.
func Digests(in RenderInput, salt string, memberOwned []string) map[string]string {
	out := map[string]string{}
	if hubv1.IsSecret(in.Object.GroupVersionKind().GroupKind()) {
		return out
	}
	for _, c := range Render(in).Clusters {
		if c.Manifest != nil {
			out[c.Cluster] = overrides.DigestLeaving(canonical.Key{}, &unstructured.Unstructured{Object: c.Manifest}, memberOwned, salt)
		}
	}
	return out
}

type renderer struct {
	in       RenderInput
	excluded overrides.Exclusions
	matching []hubv1.OverridePolicyObject
	err      error // of all clusters
	// byVersion is the object as it was prepared for the versions that clusters get.
	byVersion map[string]*overrides.Prepared
}

// prepared is the object at the version at which a cluster gets it.
func (r *renderer) prepared(c *hubv1.MemberCluster) (*overrides.Prepared, error) {
	target := hubv1.BindingTarget{Name: c.Name, State: hubv1.TargetPresent}
	if r.in.Binding != nil {
		target = ptr.Deref(r.in.Binding.Target(c.Name), target)
	}
	o := hubv1.HubObjectOf(hubv1.ObjectReference{}, r.in.Object)
	o.OtherVersions = r.in.OtherVersions
	version := hubv1.Wanted(target, o).At(c).Version
	if p := r.byVersion[version]; p != nil {
		return p, nil
	}
	p, err := overrides.Prepare(overrides.AtVersion(r.in.Object, version), r.in.DeniedMetadataPrefixes)
	if r.byVersion == nil {
		r.byVersion = map[string]*overrides.Prepared{}
	}
	r.byVersion[version] = p
	return p, err
}

func (r *renderer) render(c *hubv1.MemberCluster) Rendering {
	out := Rendering{Cluster: c.Name}
	if r.err != nil {
		out.Error = r.err.Error()
		return out
	}
	cluster := overrides.ClusterOf(c)
	if x, yes := r.excluded.Of(cluster); yes && !(x.Passing && r.holds(c.Name)) {
		out.Excluded = x.Rule.String()
		return out
	}
	divided, err := r.divided(&out)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	prepared, err := r.prepared(c)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	result, err := prepared.Render(cluster, r.matching, divided)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Manifest = result.Manifest.Object
	for _, rule := range result.Applied {
		out.Applied = append(out.Applied, RenderedRule{rule.Policy.String(), rule.Rule})
	}
	for _, s := range result.Skipped {
		out.Skipped = append(out.Skipped, SkippedRule{RenderedRule{s.Rule.Policy.String(), s.Rule.Rule}, s.Path, s.Reason})
	}
	return out
}

// holds is true if the cluster has the object by the binding: what changes of a cluster by itself takes nothing away.
func (r *renderer) holds(cluster string) bool {
	return r.in.Binding != nil && (holds(r.in.Binding, cluster) || isEvicting(r.in.Binding, cluster))
}

func (r *renderer) divided(out *Rendering) ([]overrides.Divided, error) {
	if r.in.Binding == nil {
		return nil, nil
	}
	values, decided := dividing.Values(r.in.Binding, out.Cluster, r.in.Object)
	if !decided {
		return nil, fmt.Errorf("its replicas are divided, and the binding has no share for the cluster")
	}
	var divided []overrides.Divided
	for _, v := range values {
		divided = append(divided, overrides.Divided{Path: v.Path, Number: v.Number})
		out.Divided = append(out.Divided, DividedNumber{v.Path, v.Number})
	}
	return divided, nil
}

// Failed are the clusters for which the object cannot be rendered.
func (r Renderings) Failed() []Rendering {
	return slices.DeleteFunc(slices.Clone(r.Clusters), func(c Rendering) bool { return c.Error == "" })
}

// Write writes the manifests as documents of YAML, each after a comment that says what made it. An excluded cluster
// has the comment alone. A cluster that failed has nothing.
func (r Renderings) Write(w io.Writer, _ time.Time) {
	for _, c := range r.Clusters {
		switch {
		case c.Excluded != "":
			fmt.Fprintf(w, "# %s\n", printable(c.Cluster+": excluded by "+c.Excluded))
		case c.Error == "":
			text, err := yaml.Marshal(c.Manifest)
			if err != nil { // a manifest is made of what JSON has
				text = []byte("# " + printable(err.Error()) + "\n")
			}
			fmt.Fprintf(w, "---\n# %s\n%s", printable(c.Cluster+": "+c.made()), text)
		}
	}
}

// made reads such as
//
//	5 at /spec/replicas by the division; OverridePolicy shop/a, rule "r"; skipped OverridePolicy shop/b, rule "s": /spec/paused ...
func (c Rendering) made() string {
	var parts []string
	for _, d := range c.Divided {
		parts = append(parts, fmt.Sprintf("%d at %s by the division", d.Number, d.Path))
	}
	for _, a := range c.Applied {
		parts = append(parts, a.String())
	}
	for _, s := range c.Skipped {
		parts = append(parts, fmt.Sprintf("skipped %s: %s %s", s, s.Path, s.Reason))
	}
	if len(parts) == 0 {
		return "as on the hub"
	}
	return strings.Join(parts, "; ")
}
