package console

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

// maxPasted is the maximum number of policies in one form.
const maxPasted = 20

// whatIfBody has the data for the template of the what-if page: the form, and the result of the last submitted form.
type whatIfBody struct {
	Regions, Clusters []choice
	Namespace, Policy string
	// Fault says why the form has no result. It is empty if there is no fault.
	Fault string
	// Plan is the effect of the changes in the form. It is nil if the form has no result.
	Plan *view.Plan
	CSRF string
}

// choice is an option of a list in a form.
type choice struct {
	Name   string
	Chosen bool
}

func whatIfPage(ctx context.Context, v *visit) (*page, error) {
	body, err := newWhatIf(ctx, v)
	if err != nil {
		return nil, err
	}
	return body.page(), nil
}

// page returns a page that does not load again after changes. Loading would replace the form or its result.
func (b *whatIfBody) page() *page {
	return &page{Title: "What if", Nav: "whatif", template: "whatif", Body: b}
}

// newWhatIf returns the form with the clusters that the user may see, filled with the values of a submitted form.
func newWhatIf(ctx context.Context, v *visit) (*whatIfBody, error) {
	members, err := v.user.members(ctx)
	if err != nil {
		return nil, err
	}
	b := &whatIfBody{Namespace: cmp.Or(v.PostForm.Get("namespace"), v.namespace), Policy: v.PostForm.Get("policy"), CSRF: v.session.CSRF}
	regions := map[string]bool{}
	for i := range members {
		b.Clusters = append(b.Clusters, choice{members[i].Name, slices.Contains(v.PostForm["cluster"], members[i].Name)})
		if region := members[i].SelectableLabels()[hubv1.RegionLabel]; region != "" && !regions[region] {
			regions[region] = true
			b.Regions = append(b.Regions, choice{region, slices.Contains(v.PostForm["region"], region)})
		}
	}
	byName := func(a, b choice) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(b.Clusters, byName)
	slices.SortFunc(b.Regions, byName)
	return b, nil
}

var errLargeForm = fmt.Errorf("the form is larger than %d KiB: use hansectl plan", maxFormBytes>>10)

// whatIf computes the effects of the changes in a form, and answers with the page. It writes no object.
func (c *Console) whatIf(w http.ResponseWriter, r *http.Request) {
	v, leave, ok := c.enter(w, r)
	if !ok {
		return
	}
	leave() // free the slot for pages before the wait for the simulation's slot
	var large *http.MaxBytesError
	switch err := r.ParseForm(); {
	case errors.As(err, &large):
		c.fail(w, v, http.StatusRequestEntityTooLarge, errLargeForm)
		return
	case err != nil || !v.session.sent(r):
		c.fail(w, v, http.StatusForbidden, errForm)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readWithin)
	defer cancel()
	done, ok := c.simulations.Take(ctx, access.Party{Name: v.session.party(), Max: 1})
	if !ok {
		w.Header().Set("Retry-After", "10")
		c.fail(w, v, http.StatusServiceUnavailable, errBusy)
		return
	}
	v.namespaces = withChosen(c.namespacesOf(ctx, v.session), v.namespace)
	status, answer, err := func() (int, []byte, error) {
		defer done() // freed before the answer is sent, so that a slow browser holds no slot
		return v.whatIf(ctx)
	}()
	if err != nil {
		c.refuse(w, v, err)
		return
	}
	send(w, status, answer)
}

// whatIf returns the page with the result. If the form has a mistake, the page shows the mistake, so that the user can
// correct it.
func (v *visit) whatIf(ctx context.Context) (status int, answer []byte, err error) {
	body, err := newWhatIf(ctx, v)
	if err != nil {
		return 0, nil, err
	}
	status = http.StatusOK
	err = body.answer(ctx, v)
	var wrong inputError
	switch {
	case errors.As(err, &wrong):
		status, body.Fault = http.StatusUnprocessableEntity, wrong.Error()
	case err != nil:
		return 0, nil, err
	}
	answer, err = body.page().render(v)
	return status, answer, err
}

// inputError is an error about a mistake of the user in the form.
type inputError struct{ error }

var errNothingAsked = errors.New("choose a region or a cluster that is lost, or paste a policy")

func (b *whatIfBody) answer(ctx context.Context, v *visit) error {
	pasted, err := parsePolicies(b.Policy, b.Namespace)
	if err != nil {
		return inputError{err}
	}
	if len(pasted)+len(v.PostForm["region"])+len(v.PostForm["cluster"]) == 0 {
		return inputError{errNothingAsked}
	}
	before, err := v.user.readFleet(ctx, b.Namespace, len(pasted) > 0, v.now)
	if err != nil {
		return err
	}
	after, changes, err := v.changed(ctx, before, pasted)
	if err != nil {
		return err
	}
	if len(pasted) > 0 && b.Namespace != "" {
		v.user.note("Objects of other namespaces than " + b.Namespace + " are not considered")
	}
	made, err := preview.Make(ctx, before, after, preview.Options{MetadataOnly: len(pasted) == 0})
	if err != nil {
		return err
	}
	made.Assumed = changes
	b.Plan = &view.Plan{Plan: made}
	return nil
}

// changed returns the fleet with the changes in the form, and a text for each change. The form may say that a cluster
// or region is lost. Such a cluster is assumed to be unreachable for longer than any placement waits before it moves
// copies to other clusters.
func (v *visit) changed(ctx context.Context, before decide.Fleet, pasted []client.Object) (after decide.Fleet, changes []string, err error) {
	after = before
	for _, o := range pasted {
		name := o.GetObjectKind().GroupVersionKind().Kind + " " + nameOf(o)
		switch err := v.user.dryRun(ctx, o); {
		case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
			return after, nil, inputError{fmt.Errorf("%s: the hub refuses it: %w", name, err)}
		case err != nil:
			return after, nil, fmt.Errorf("checking %s: %w", name, err)
		}
		applyPolicy(&after, o)
		changes = append(changes, name+" is applied")
	}
	for _, lost := range []struct {
		names []string
		lose  func(*decide.Fleet, string) (string, error)
	}{{v.PostForm["cluster"], preview.LoseCluster}, {v.PostForm["region"], preview.LoseRegion}} {
		for _, name := range lost.names {
			change, err := lost.lose(&after, name)
			if err != nil {
				return after, nil, inputError{fmt.Errorf("%q: %w", name, err)}
			}
			changes = append(changes, change)
		}
	}
	return after, changes, nil
}

// policyOf returns an empty object of a placement or override policy kind. It is nil for any other kind.
func policyOf(kind string) client.Object {
	switch kind {
	case "Placement":
		return &hubv1.Placement{}
	case "ClusterPlacement":
		return &hubv1.ClusterPlacement{}
	case "OverridePolicy":
		return &hubv1.OverridePolicy{}
	case "ClusterOverridePolicy":
		return &hubv1.ClusterOverridePolicy{}
	}
	return nil
}

// parsePolicies reads the policies of a form. An error names the document, and the line or field in it.
func parsePolicies(text, namespace string) ([]client.Object, error) {
	var out []client.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &u.Object); err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(u.Object) == 0 {
			continue
		}
		o, err := readPolicy(u, namespace)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if out = append(out, o); len(out) > maxPasted {
			return nil, fmt.Errorf("there are more than %d policies: use hansectl plan", maxPasted)
		}
	}
}

func readPolicy(u *unstructured.Unstructured, namespace string) (client.Object, error) {
	o := policyOf(u.GetKind())
	if o == nil || u.GetAPIVersion() != hubv1.GroupVersion.String() {
		return nil, fmt.Errorf("%s %s: want a Placement, ClusterPlacement, OverridePolicy or ClusterOverridePolicy of %s; hansectl plan takes other objects, too", u.GetAPIVersion(), u.GetKind(), hubv1.GroupVersion)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, o, true); err != nil {
		return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	if _, namespaced := map[string]bool{"Placement": true, "OverridePolicy": true}[u.GetKind()]; namespaced && o.GetNamespace() == "" {
		if namespace == "" {
			return nil, fmt.Errorf("%s %s: metadata.namespace is missing: set it, or choose a namespace in the form", u.GetKind(), u.GetName())
		}
		o.SetNamespace(namespace)
	}
	return o, nil
}

// dryRun asks the API server to validate a policy and to set its defaults, as if it replaced the policy of the same
// name. The API server stores nothing.
func (u *user) dryRun(ctx context.Context, o client.Object) error {
	there := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	kind := o.GetObjectKind().GroupVersionKind()
	defer func() { o.GetObjectKind().SetGroupVersionKind(kind) }()
	err := u.Get(ctx, client.ObjectKeyFromObject(o), there)
	switch {
	case apierrors.IsNotFound(err):
		return u.Create(ctx, o, client.DryRunAll)
	case err != nil:
		return err
	}
	o.SetResourceVersion(there.GetResourceVersion())
	return u.Update(ctx, o, client.DryRunAll)
}

// applyPolicy adds a policy to a fleet, or replaces the policy of the same kind and name.
func applyPolicy(f *decide.Fleet, o client.Object) {
	same := func(other metav1.Object) bool {
		return other.GetNamespace() == o.GetNamespace() && other.GetName() == o.GetName()
	}
	switch o := o.(type) {
	case hubv1.PlacementObject:
		f.Placements = append(slices.DeleteFunc(slices.Clone(f.Placements), func(p hubv1.PlacementObject) bool { return same(p) }), o)
	case hubv1.OverridePolicyObject:
		f.Overrides = append(slices.DeleteFunc(slices.Clone(f.Overrides), func(p hubv1.OverridePolicyObject) bool { return same(p) }), o)
	}
}
