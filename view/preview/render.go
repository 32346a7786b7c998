package preview

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/replicas"
)

// RenderInput contains all inputs for the manifests of one object.
type RenderInput struct {
	// Object is the hub object, at the version that the hub's API server prefers.
	Object *unstructured.Unstructured
	// OtherVersions are other versions at which a cluster may get the object, if it does not serve the version of Object.
	OtherVersions []string
	// Binding has the clusters of the object, and each cluster's number of replicas if the replicas are divided. It is nil
	// if there is no decision.
	Binding *hubv1.BindingSpec
	// Policies are the override policies that may select the object. Render checks their selectors.
	Policies        []hubv1.OverridePolicyObject
	NamespaceLabels map[string]string
	// Clusters are the clusters for which Render makes manifests.
	Clusters []*hubv1.MemberCluster
	// DeniedMetadataPrefixes are prefixes of labels and annotations that the hub never copies to members, in addition to
	// the built-in prefixes.
	DeniedMetadataPrefixes []string
}

// Rendering is the manifest for one cluster, or the reason why there is none.
type Rendering struct {
	Cluster string `json:"cluster"`
	// Manifest is the object that the hub would apply, without the labels and annotations that the hub adds.
	Manifest map[string]any `json:"manifest,omitempty"`
	// Applied are the rules of override policies that changed the manifest, the lowest rank first.
	Applied []RenderedRule `json:"applied,omitempty"`
	// Skipped are the rules that were skipped because their condition when is false or one of their test operations
	// failed, the lowest rank first.
	Skipped []SkippedRule `json:"skipped,omitempty"`
	// LeftOut are the JSON pointers of fields that the hub does not send, because its API server has filled them in. Each
	// cluster sets its own values.
	LeftOut []string `json:"leftOut,omitempty"`
	// Whole is the manifest with the fields in LeftOut. It is nil if there are none.
	Whole map[string]any `json:"-"`
	// Divided are the fields whose number the division of replicas sets, with the number for this cluster.
	Divided []DividedNumber `json:"divided,omitempty"`
	// Dropped are labels, annotations, finalizers and owner references of the hub object that the manifest lacks, because
	// the hub never sends them. An example is "label argocd.argoproj.io/instance".
	Dropped []string `json:"dropped,omitempty"`
	// Excluded is the rule that excludes the object from the cluster. It is empty if no rule excludes the object.
	Excluded string `json:"excluded,omitempty"`
	// Error is the reason why the hub would not write the object. It is empty if the hub would write it.
	Error string `json:"error,omitempty"`
}

// RenderedRule is a rule of an override policy.
type RenderedRule struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule"`
}

// String returns the rule as text: `OverridePolicy shop/a, rule "r"`.
func (r RenderedRule) String() string { return fmt.Sprintf("%s, rule %q", r.Policy, r.Rule) }

// SkippedRule is a rule of an override policy that was skipped, because its condition when is false or one of its test
// operations failed.
type SkippedRule struct {
	RenderedRule `json:",inline"`
	// Path is the JSON pointer of the field that the failed test operation compares. It is empty if when is false.
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// DividedNumber is a field whose number the division of replicas sets.
type DividedNumber struct {
	Path   string `json:"path"`
	Number int64  `json:"number"`
}

// Render renders the manifests with the hub's own functions. The results are sorted by the names of the clusters.
func Render(in RenderInput) []Rendering {
	object := in.selectable()
	r := renderer{in: in, byVersion: map[string]*overrides.Prepared{}}
	r.excluded, r.err = overrides.ExclusionsOf(in.Policies, object)
	if r.err == nil {
		r.matching, r.err = overrides.Matching(in.Policies, object)
	}
	out := make([]Rendering, 0, len(in.Clusters))
	for _, c := range in.Clusters {
		out = append(out, r.render(c))
	}
	slices.SortFunc(out, func(a, b Rendering) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// Explain renders the object for one cluster, and returns the author of each field that differs from the object. It
// ignores rules that exclude clusters.
func Explain(in RenderInput, cluster *hubv1.MemberCluster) (overrides.Result, error) {
	r := renderer{in: in, byVersion: map[string]*overrides.Prepared{}}
	divided, err := r.divided(&Rendering{Cluster: cluster.Name})
	if err != nil {
		return overrides.Result{}, err
	}
	matching, err := overrides.Matching(in.Policies, in.selectable())
	if err != nil {
		return overrides.Result{}, err
	}
	prepared, err := r.prepared(cluster)
	if err != nil {
		return overrides.Result{}, err
	}
	return prepared.Explain(in.cluster(cluster), matching, divided)
}

// cluster returns the data of a cluster that the rules may use. Rules for the objects of an operator do not see which
// operators the cluster has.
func (in RenderInput) cluster(c *hubv1.MemberCluster) overrides.Cluster {
	cluster := overrides.ClusterOf(c)
	if in.selectable().IsOfOperator() {
		cluster.Operators = nil
	}
	return cluster
}

// selectable returns the data of the object that the selectors of policies examine.
func (in RenderInput) selectable() hubv1.SelectableObject {
	return hubv1.Selectable(hubv1.IdentityOf(in.Object), in.Object, in.NamespaceLabels)
}

type renderer struct {
	in       RenderInput
	excluded overrides.Exclusions
	matching []hubv1.OverridePolicyObject
	err      error // the error for all clusters
	// byVersion caches the object, ready for rendering. The key is the API version at which a cluster gets the object,
	// such as v1.
	byVersion map[string]*overrides.Prepared
}

// prepared returns the object at the version that the cluster gets, ready for rendering.
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
	r.byVersion[version] = p
	return p, err
}

func (r *renderer) render(c *hubv1.MemberCluster) Rendering {
	out := Rendering{Cluster: c.Name}
	if r.err != nil {
		out.Error = r.err.Error()
		return out
	}
	cluster := r.in.cluster(c)
	if x, yes := r.excluded.Of(cluster); yes && !(x.Passing && r.holds(c.Name)) {
		out.Excluded = x.Rule.String()
		return out
	}
	if err := r.manifest(c, cluster, &out); err != nil {
		out.Error = err.Error()
	}
	return out
}

// manifest sets the manifest of out, and the rules and numbers from which the manifest was made.
func (r *renderer) manifest(c *hubv1.MemberCluster, cluster overrides.Cluster, out *Rendering) error {
	divided, err := r.divided(out)
	if err != nil {
		return err
	}
	prepared, err := r.prepared(c)
	if err != nil {
		return err
	}
	result, err := prepared.Render(cluster, r.matching, divided)
	if err != nil {
		return err
	}
	out.Manifest, out.LeftOut = result.Manifest.Object, result.LeftOut
	if result.Whole != nil {
		out.Whole = result.Whole.Object
	}
	out.Dropped = overrides.Dropped(r.in.Object, r.in.DeniedMetadataPrefixes)
	for _, rule := range result.Applied {
		out.Applied = append(out.Applied, RenderedRule{rule.Policy.String(), rule.Rule})
	}
	for _, s := range result.Skipped {
		out.Skipped = append(out.Skipped, SkippedRule{RenderedRule{s.Rule.Policy.String(), s.Rule.Rule}, s.Path, s.Reason})
	}
	return nil
}

// holds reports whether the binding has the cluster as a target that is not Absent. For such a cluster, Render ignores
// an exclusion that may end without a user's action, because this exclusion does not remove the copy.
func (r *renderer) holds(cluster string) bool {
	if r.in.Binding == nil {
		return false
	}
	t := r.in.Binding.Target(cluster)
	return t != nil && t.State != hubv1.TargetAbsent
}

var errNoShare = errors.New("its replicas are divided, and the binding has no share for the cluster")

func (r *renderer) divided(out *Rendering) ([]overrides.Divided, error) {
	if r.in.Binding == nil {
		return nil, nil
	}
	values, decided := replicas.Values(r.in.Binding, out.Cluster, r.in.Object)
	if !decided {
		return nil, errNoShare
	}
	var divided []overrides.Divided
	for _, v := range values {
		divided = append(divided, overrides.Divided{Path: v.Path, Number: v.Number})
		out.Divided = append(out.Divided, DividedNumber{v.Path, v.Number})
	}
	return divided, nil
}
