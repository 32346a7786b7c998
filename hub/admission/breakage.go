package admission

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/replicas"
	"github.com/hanse-dev/hanse/placement/tenancy"
)

// maxObjects is the maximum number of objects that a review renders. If the policy selects more objects, the review
// renders some of them, spread evenly over the list of the selected objects.
const maxObjects = 500

func (r *Reviewer) reviewOverrides(ctx context.Context, p hubv1.OverridePolicyObject, who author) ([]string, error) {
	needs, err := r.toWrite(p)
	if err != nil {
		return nil, err
	}
	if err := r.demand(ctx, who, append(needs, overriding(p)...)); err != nil {
		return nil, err
	}
	if err := readable(p); err != nil {
		return nil, err
	}
	trial, err := r.newTrial(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := trial.run(ctx); err != nil {
		return nil, err
	}
	if len(trial.broken) > 0 {
		return nil, &refusal{text: "the policy would break objects: " + someOf(trial.broken, "; ")}
	}
	return trial.warnings, nil
}

// readable returns an error if the policy is invalid, whatever object it is applied to.
func readable(p hubv1.OverridePolicyObject) error {
	if _, err := metav1.LabelSelectorAsSelector(p.SelectedNamespaces()); err != nil {
		return &refusal{text: fmt.Sprintf("spec.namespaceSelector: %s", err)}
	}
	errs := overrides.Validate(p.OverrideSpec(), field.NewPath("spec"))
	if len(errs) == 0 {
		return nil
	}
	return refusalOf(errs)
}

// refusalOf returns a refusal with the first errors of a list.
func refusalOf(errs field.ErrorList) *refusal {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return &refusal{text: someOf(texts, "; ")}
}

// trial renders the objects that a policy selects, with the policy and without it.
type trial struct {
	reviewer *Reviewer
	policy   hubv1.OverridePolicyObject
	// without has all override policies except the reviewed one. with has the same policies and the reviewed one.
	without, with []hubv1.OverridePolicyObject
	clusters      map[string]overrides.Cluster
	selected      []selectedObject
	// literals are the values and keys that the policy itself contains. An answer may show them.
	literals sets.Set[string]

	tried    sets.Set[schema.GroupKind]
	sent     sets.Set[[sha256.Size]byte] // digests of the rendered manifests that were sent as dry runs
	broken   []string
	warnings []string
	warned   sets.Set[string]
}

// selectedObject is a hub object that the policy selects, with the decision in its binding.
type selectedObject struct {
	hubv1.SelectableObject
	binding hubv1.BindingObject
}

func (r *Reviewer) newTrial(ctx context.Context, p hubv1.OverridePolicyObject) (*trial, error) {
	t := &trial{
		reviewer: r, policy: p, clusters: map[string]overrides.Cluster{}, literals: literals(p.OverrideSpec()),
		tried: sets.New[schema.GroupKind](), sent: sets.New[[sha256.Size]byte](), warned: sets.New[string](),
	}
	all, err := scopes.OverridePolicies(ctx, r.options.Client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	for _, other := range all {
		if overrides.RefOf(other) != overrides.RefOf(p) {
			t.without = append(t.without, other)
		}
	}
	t.with = append(slices.Clone(t.without), p)
	var members hubv1.MemberClusterList
	if err := r.options.Client.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	for i := range members.Items {
		t.clusters[members.Items[i].Name] = overrides.ClusterOf(&members.Items[i])
	}
	t.selected, err = r.objects(ctx, p)
	return t, err
}

// objects returns the objects that the policy selects and that have a decision, sorted by name.
func (r *Reviewer) objects(ctx context.Context, p hubv1.OverridePolicyObject) ([]selectedObject, error) {
	bindings, err := scopes.Bindings(ctx, r.options.Client, p.GetNamespace(), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var out []selectedObject
	for _, b := range bindings {
		id := hubv1.ObjectOf(b)
		if b.GetDeletionTimestamp() != nil || !selectsKind(p.OverrideSpec().ResourceSelectors, id.GroupKind()) {
			continue
		}
		head, ok := r.options.Templates.Head(id)
		if !ok {
			continue // deleted, or not read yet: dispatch then finds the error when it renders the object
		}
		labels, err := r.namespaceLabels(ctx, id.Namespace)
		if err != nil {
			return nil, err
		}
		o := hubv1.Selectable(id, head, labels)
		matching, err := overrides.Matching([]hubv1.OverridePolicyObject{p}, o)
		if err != nil {
			return nil, &refusal{text: err.Error()}
		}
		if len(matching) > 0 {
			out = append(out, selectedObject{SelectableObject: o, binding: b})
		}
	}
	slices.SortFunc(out, func(a, b selectedObject) int { return strings.Compare(a.String(), b.String()) })
	return out, nil
}

func (r *Reviewer) namespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	var ns corev1.Namespace
	if err := r.options.Client.Get(ctx, types.NamespacedName{Name: name}, &ns); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	return ns.Labels, nil
}

func selectsKind(selectors []hubv1.ResourceSelector, gk schema.GroupKind) bool {
	return slices.ContainsFunc(selectors, func(s hubv1.ResourceSelector) bool {
		return s.APIGroup == gk.Group && (s.Kind == "*" || s.Kind == gk.Kind)
	})
}

// run renders the selected objects. It appends errors to t.broken and warnings to t.warnings. It ends early if it has
// found enough errors, or after renderWithin, which is half of a review's timeout.
func (t *trial) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renderWithin)
	defer cancel()
	objects := evenly(t.selected, maxObjects)
	checked := 0
	for _, o := range objects {
		if isOver(ctx) || len(t.broken) > 0 && checked >= maxObjects/10 {
			break
		}
		if err := t.object(ctx, o); err != nil {
			return err
		}
		checked++
	}
	if checked < len(t.selected) && len(t.broken) == 0 {
		t.warn(fmt.Sprintf("checked %d of the %d objects that the policy selects; if the policy breaks another object, the hub does not send that object, and its binding has the reason", checked, len(t.selected)))
	}
	for _, s := range t.policy.OverrideSpec().ResourceSelectors {
		if isOver(ctx) {
			break
		}
		if err := t.literally(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// evenly returns n elements of a list, spread evenly over the list.
func evenly(all []selectedObject, n int) []selectedObject {
	if len(all) <= n {
		return all
	}
	out := make([]selectedObject, 0, n)
	for i := range n {
		out = append(out, all[i*len(all)/n])
	}
	return out
}

func (t *trial) warn(text string) {
	if !t.warned.Has(text) && t.warned.Len() < 5 {
		t.warned.Insert(text)
		t.warnings = append(t.warnings, text)
	}
}

// breaks records an error that the reviewed policy causes. An expression can produce any number of errors with the same
// text, so that each text is recorded once.
func (t *trial) breaks(text string) {
	if !slices.Contains(t.broken, text) {
		t.broken = append(t.broken, text)
	}
}

func (t *trial) object(ctx context.Context, o selectedObject) error {
	template, ok := t.reviewer.options.Templates.Get(o.ObjectIdentity)
	if !ok {
		return nil
	}
	prepared, err := overrides.Prepare(template, t.reviewer.options.DeniedMetadataPrefixes)
	if err != nil {
		return nil //nolint:nilerr // the object itself is invalid
	}
	with, withErr := overrides.Matching(t.with, o.SelectableObject)
	without, _ := overrides.Matching(t.without, o.SelectableObject)
	if withErr != nil {
		return nil //nolint:nilerr // another policy is invalid, so that this object is not rendered
	}
	t.tried.Insert(o.GroupKind())
	for _, name := range t.targets(o) {
		if isOver(ctx) {
			break
		}
		if err := t.inCluster(ctx, o, template, prepared, name, with, without); err != nil {
			return err
		}
	}
	return nil
}

// isOver reports whether the time of a review is over.
func isOver(ctx context.Context) bool { return ctx.Err() != nil }

// targets returns the clusters to which a rule of the policy applies. It considers only the clusters that, according to
// the object's binding, hold the object or will get it. If there are no such clusters, it considers all clusters.
func (t *trial) targets(o selectedObject) []string {
	var out []string
	for _, target := range o.binding.BindingSpec().Clusters {
		if _, known := t.clusters[target.Name]; known && target.State != hubv1.TargetAbsent {
			out = append(out, target.Name)
		}
	}
	if len(out) == 0 {
		out = slices.Sorted(maps.Keys(t.clusters))
	}
	return slices.DeleteFunc(out, func(name string) bool { return !t.applies(t.cluster(o, name)) })
}

// cluster returns the data of a cluster that rules for the object can read.
func (t *trial) cluster(o selectedObject, name string) overrides.Cluster {
	cluster := t.clusters[name]
	if o.IsOfOperator() {
		cluster.Operators = nil
	}
	return cluster
}

// applies reports whether a rule of the policy selects the cluster. It returns true for an invalid rule, so that
// rendering reports the error.
func (t *trial) applies(cluster overrides.Cluster) bool {
	rules := t.policy.OverrideSpec().Rules
	for i := range rules {
		if ok, err := overrides.Selects(&rules[i], cluster); (ok || err != nil) && !rules[i].Exclude {
			return true
		}
	}
	return false
}

func (t *trial) inCluster(ctx context.Context, o selectedObject, template *unstructured.Unstructured, prepared *overrides.Prepared, name string, with, without []hubv1.OverridePolicyObject) error {
	shares, decided := replicas.Values(o.binding.BindingSpec(), name, template)
	if !decided {
		return nil // waits until its number of replicas is decided
	}
	divided := make([]overrides.Divided, 0, len(shares))
	for _, v := range shares {
		divided = append(divided, overrides.Divided{Path: v.Path, Number: v.Number})
	}
	where := fmt.Sprintf("%s in cluster %s: ", o.ObjectIdentity, name)
	cluster := t.cluster(o, name)
	result, err := prepared.Render(cluster, with, divided)
	if conflict := (*overrides.ConflictError)(nil); errors.As(err, &conflict) {
		// Two override policies conflict. This is only a warning, because another policy than the reviewed one may be the
		// cause, and because the statuses of bindings and policies show the conflict. The object is rendered again with the
		// reviewed policy alone, and this result must match the schema.
		t.warn(where + err.Error())
		with, without = []hubv1.OverridePolicyObject{t.policy}, nil
		result, err = prepared.Render(cluster, with, divided)
	}
	if err != nil {
		t.failed(where, err, func() error {
			_, err := prepared.Render(cluster, without, divided)
			return err
		})
		return nil
	}
	manifestWithout := func() *unstructured.Unstructured {
		result, _ := prepared.Render(cluster, without, divided) // nil if the rendering without this policy fails
		return result.Manifest
	}
	t.unsafe(o, where, result.Manifest, manifestWithout)
	if t.misfits(ctx, o, where, template.GroupVersionKind(), result.Manifest, manifestWithout) {
		return nil
	}
	return t.notAdmitted(ctx, o, where, result.Manifest, manifestWithout)
}

// misfits records where the rendered manifest does not match the schema of its kind, if the reviewed policy causes
// this. It reports whether it has recorded an error.
func (t *trial) misfits(ctx context.Context, o selectedObject, where string, gvk schema.GroupVersionKind, manifest *unstructured.Unstructured, without func() *unstructured.Unstructured) bool {
	kind := t.reviewer.options.Schema(ctx, gvk)
	faults := kind.Faults(manifest.Object)
	before := sets.New[openapi.Fault]()
	if manifest := without(); len(faults) > 0 && manifest != nil {
		before.Insert(kind.Faults(manifest.Object)...)
	}
	recorded := false
	for _, f := range faults {
		if !before.Has(f) {
			t.breaks(where + t.shown(f, o.GroupKind()))
			recorded = true
		}
	}
	return recorded
}

// unsafe records why the hub would not write the rendered manifest: it is a Secret of a refused type, or it violates
// Pod Security. It records only problems that the reviewed policy causes.
func (t *trial) unsafe(o selectedObject, where string, manifest *unstructured.Unstructured, without func() *unstructured.Unstructured) {
	if tenancy.Of(manifest, o.NamespaceLabels, o.IsOfOperator()) == nil {
		return
	}
	before := without()
	if r := tenancy.OfSecret(manifest); r != nil && (before == nil || tenancy.OfSecret(before) == nil) {
		t.breaks(where + r.Message)
	}
	level, violations := tenancy.PodSecurity(manifest, o.NamespaceLabels)
	if before != nil {
		_, known := tenancy.PodSecurity(before, o.NamespaceLabels)
		violations = slices.DeleteFunc(violations, func(v string) bool { return slices.Contains(known, v) })
	}
	if len(violations) > 0 {
		t.breaks(fmt.Sprintf("%sthe namespace enforces Pod Security %s, which forbids %s", where, level, strings.Join(violations, ", ")))
	}
}

// failed records an error of rendering, if the reviewed policy causes it. without renders the object without this
// policy. If the policy overrides a number of replicas that the hub divides among clusters, failed records only a
// warning.
func (t *trial) failed(where string, err error, without func() error) {
	invalid, divided := (*overrides.InvalidError)(nil), (*overrides.DividedError)(nil)
	switch {
	case errors.As(err, &divided):
		t.warn(where + err.Error())
	case errors.As(err, &invalid):
		if invalid.Policy == overrides.RefOf(t.policy) {
			t.broken = append(t.broken, where+err.Error())
		}
	case without() == nil:
		t.broken = append(t.broken, where+err.Error())
	}
}

// shown returns the text of an error. It leaves out values and keys that are not in the policy. An expression can turn
// the value of a field into a key, and the author may have no right to read this value.
func (t *trial) shown(f openapi.Fault, gk schema.GroupKind) string {
	literals := t.literals
	if hubv1.IsSecret(gk) {
		literals = nil
	}
	return f.Redacted(literals).String()
}

// literally compares the constant values in the rules with the schema of a selected kind. It is used if no object of
// the kind was rendered.
func (t *trial) literally(ctx context.Context, s hubv1.ResourceSelector) error {
	gk := schema.GroupKind{Group: s.APIGroup, Kind: s.Kind}
	if s.Kind == "*" || t.tried.Has(gk) {
		return nil
	}
	t.tried.Insert(gk)
	mapping, served, err := t.reviewer.mapping(gk)
	if err != nil || !served {
		return err
	}
	kind := t.reviewer.options.Schema(ctx, mapping.GroupVersionKind)
	for i := range t.policy.OverrideSpec().Rules {
		rule := &t.policy.OverrideSpec().Rules[i]
		for _, f := range literalFaults(kind, rule) {
			t.breaks(fmt.Sprintf("every %s, by rule %q: %s", gk, rule.Name, t.shown(f, gk)))
		}
	}
	return nil
}

func literalFaults(kind *openapi.Schema, rule *hubv1.OverrideRule) []openapi.Fault {
	var out []openapi.Fault
	if rule.MergePatch != nil {
		if patch, ok := decoded(rule.MergePatch.Raw); ok {
			out = append(out, kind.FaultsAt("", patch, true)...)
		}
	}
	for _, op := range rule.Patches {
		if op.Op == hubv1.PatchTest {
			continue
		}
		var value any
		if op.Value != nil && (op.Op == hubv1.PatchAdd || op.Op == hubv1.PatchReplace) {
			value, _ = decoded(op.Value.Raw)
		}
		out = append(out, kind.FaultsAt(op.Path, value, false)...)
	}
	return out
}

// literals returns all scalars and keys that the rules contain.
func literals(spec *hubv1.OverridePolicySpec) sets.Set[string] {
	raw, err := json.Marshal(spec.Rules)
	if err != nil {
		return nil
	}
	return openapi.Literals(raw)
}
