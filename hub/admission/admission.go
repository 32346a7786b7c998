// Package admission reviews policies before the hub's API server stores them. It checks the policy and the rights of
// its author.
//
//   - The author must have the rights on the hub that the policy exercises in the author's name (rights.go). The rights
//     are checked first, so that a user without rights causes no other work. hub/access limits the reviews of one
//     author and of one namespace.
//   - A policy must be valid: paths, expressions, forbidden fields, sizes (overrides.Validate, placement.Compile,
//     rollout.Validate).
//   - An override policy must break no object. Each selected object is rendered for each of its clusters, and compared
//     with the schema of its kind on the hub (breakage.go). If the option DryRun is set, the hub's API server must
//     admit it as a new object (dryrun.go). The policy is not refused for errors that exist without it.
//   - A policy that would withdraw copies gets a warning with their number (withdrawals.go), and so does a policy that
//     names clusters, labels, kinds or objects that do not exist (unmatched.go). A warning never causes a refusal.
//
// Deletions are not reviewed, except those of FederatedOperators. Changes that leave the spec unchanged are not
// reviewed either.
//
// Any client that reaches the port and knows the path can read the answer to a review. An answer therefore shows only
// names in the schema, names of objects and clusters, labels of clusters, and values and map keys that the policy
// itself contains. It shows no other value or map key of an object. If the object is a Secret, the answer shows only
// names in the schema.
//
// The controllers repeat most checks: they report an invalid policy in its status, and do not send a broken manifest
// (hub/report/policies, hub/dispatch). The rights of the author cannot be checked later, because only the author's name
// is stored (author.go), without the groups of the author.
package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/access"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/guard"
)

// ReviewPath is the path of the webhook that reviews policies, without its random part, which package
// hub/admission/certificate appends.
const ReviewPath = "/validate-policies"

const (
	// reviewWithin is the timeout of a review. The API server waits for 10 s.
	reviewWithin = 8 * time.Second
	// renderWithin is the part of reviewWithin (the timeout of a review) in which objects are rendered.
	renderWithin = reviewWithin / 2
	// atOnce is the number of concurrent reviews: at most ofAuthor of one author, and at most ofNamespace of policies of
	// one namespace. Further reviews wait.
	atOnce      = 4
	ofAuthor    = 2
	ofNamespace = 3
	// maxSelectors, maxReferences and maxNames are the limits in the definitions of policies.
	maxSelectors  = 64
	maxReferences = 16
	maxNames      = 1000
)

// Templates gives access to the hub objects in memory.
type Templates interface {
	// Get returns a hub object, which the caller must not change. It returns false for an unknown object.
	Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool)
	// Head returns a hub object with its namespace, name and labels.
	Head(id hubv1.ObjectIdentity) (metav1.Object, bool)
	// StoredOf returns the objects of a bundle.
	StoredOf(hubv1.BundleReference) []hubv1.ObjectIdentity
	// StoredKinds returns the kinds of the objects of bundles.
	StoredKinds() sets.Set[schema.GroupKind]
	// State returns the state of the watch of a kind. It returns false if the kind is not watched.
	State(gk schema.GroupKind) (informer.State, bool)
}

// Options of a Reviewer. The fields DryRun, Lookup and DeniedMetadataPrefixes are optional; all other fields are
// required.
type Options struct {
	// Client reads from the cache, and creates SubjectAccessReviews.
	Client    client.Client
	Mapper    meta.RESTMapper
	Templates Templates
	// Schema returns the schema of a kind on the hub's API server, or nil if it cannot be read.
	Schema func(ctx context.Context, gvk schema.GroupVersionKind) *openapi.Schema
	// DryRun sends an object to the hub's API server as the creation of a new one, as a dry run. If it is nil, rendered
	// objects are not sent.
	DryRun func(ctx context.Context, o *unstructured.Unstructured) error
	// Lookup tells which kinds the hub may read and which objects exist. If it is nil, there are no warnings about them.
	Lookup Lookup
	// Readable returns an error if a placement is invalid, whatever objects it selects.
	Readable func(hubv1.PlacementObject) error
	// RemovalLimit is how many copies an edit may delete at once before the hub holds the deletion until a user confirms
	// it. It applies to each cluster, and to each placement that sets no limit.
	RemovalLimit guard.Limit
	// DeniedMetadataPrefixes are prefixes of labels and annotations that the hub never copies to members.
	DeniedMetadataPrefixes []string
}

// Reviewer reviews policies.
type Reviewer struct {
	options   Options
	slots     *access.Slots
	forecasts *access.Slots
}

var _ admission.Handler = &Reviewer{}

// New returns a Reviewer with these options.
func New(o Options) *Reviewer {
	return &Reviewer{options: o, slots: access.New(atOnce), forecasts: access.New(forecastsAtOnce)}
}

// refusal is the reason why a policy is refused. Its text is for the author of the policy.
type refusal struct {
	forbidden bool // true: the author lacks a right
	text      string
}

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Handle implements admission.Handler.
func (r *Reviewer) Handle(ctx context.Context, req admission.Request) admission.Response {
	policy, unchanged, err := read(req)
	switch {
	case err != nil:
		return admission.Errored(http.StatusBadRequest, err)
	case unchanged:
		return admission.Allowed("")
	}
	// The cancellation of ctx at the end of the process is dropped, so that a review that has begun is finished before the
	// process ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewWithin)
	defer cancel()
	giveBack, ok := r.slots.Take(ctx, parties(req.UserInfo.Username, policy.GetNamespace())...)
	if !ok {
		return admission.Errored(http.StatusServiceUnavailable, errors.New("too many policies are under review: try again"))
	}
	defer giveBack()
	var warnings []string
	if req.Operation == admissionv1.Delete {
		err = r.reviewRemoval(ctx, policy)
	} else {
		warnings, err = r.review(ctx, policy, author(req.UserInfo))
	}
	refused := (*refusal)(nil)
	switch {
	case err == nil:
		return admission.Allowed("").WithWarnings(warnings...)
	case errors.As(err, &refused) && refused.forbidden:
		return admission.Denied(refused.text)
	case errors.As(err, &refused):
		return admission.Errored(http.StatusUnprocessableEntity, refused)
	}
	return admission.Errored(http.StatusInternalServerError, fmt.Errorf("the policy could not be reviewed, try again: %w", err))
}

// parties returns the author and, for a namespaced policy, its namespace. For each party, the number of concurrent
// reviews is limited.
func parties(user, namespace string) []access.Party {
	author := access.Party{Name: "user/" + user, Max: ofAuthor}
	if namespace == "" {
		return []access.Party{author}
	}
	return []access.Party{author, {Name: "namespace/" + namespace, Max: ofNamespace}}
}

func (r *Reviewer) review(ctx context.Context, policy client.Object, who author) ([]string, error) {
	if hubv1.IsSystemNamespace(policy.GetNamespace()) {
		return nil, &refusal{text: fmt.Sprintf("Hanse writes nothing in the namespaces kube-* and %s of members, so a policy in %s has no effect: create it in another namespace",
			hubv1.SystemNamespace, policy.GetNamespace())}
	}
	var warnings []string
	var err error
	switch p := policy.(type) {
	case hubv1.PlacementObject:
		warnings, err = r.reviewPlacement(ctx, p, who)
	case hubv1.OverridePolicyObject:
		warnings, err = r.reviewOverrides(ctx, p, who)
	case hubv1.BundleObject:
		return r.reviewBundle(ctx, p, who)
	default:
		err = fmt.Errorf("reviewing a %T", policy)
	}
	if err != nil {
		return nil, err
	}
	return slices.Concat(warnings, r.unmatched(ctx, policy), r.withdrawals(ctx, policy)), nil
}

// read decodes the policy and reports whether its spec is unchanged.
func read(req admission.Request) (policy client.Object, unchanged bool, err error) {
	fresh, ok := map[string]func() client.Object{
		"Placement":                 func() client.Object { return &hubv1.Placement{} },
		"ClusterPlacement":          func() client.Object { return &hubv1.ClusterPlacement{} },
		"OverridePolicy":            func() client.Object { return &hubv1.OverridePolicy{} },
		"ClusterOverridePolicy":     func() client.Object { return &hubv1.ClusterOverridePolicy{} },
		hubv1.BundleKind:            func() client.Object { return &hubv1.Bundle{} },
		hubv1.ClusterBundleKind:     func() client.Object { return &hubv1.ClusterBundle{} },
		hubv1.FederatedOperatorKind: func() client.Object { return &hubv1.FederatedOperator{} },
	}[req.Kind.Kind]
	if !ok || req.Kind.Group != hubv1.GroupVersion.Group {
		return nil, false, fmt.Errorf("reviewing %s: only policies and bundles are reviewed", req.Kind.String())
	}
	policy = fresh()
	content := req.Object.Raw
	if req.Operation == admissionv1.Delete {
		content = req.OldObject.Raw
	}
	if err := json.Unmarshal(content, policy); err != nil {
		return nil, false, fmt.Errorf("reading the %s: %w", req.Kind.Kind, err)
	}
	// A policy that is created may lack its namespace and its name. The admission request has both.
	policy.SetNamespace(req.Namespace)
	if policy.GetName() == "" {
		policy.SetName(req.Name)
	}
	if req.Operation != admissionv1.Update {
		return policy, false, nil
	}
	before := fresh()
	if err := json.Unmarshal(req.OldObject.Raw, before); err != nil {
		return nil, false, fmt.Errorf("reading the %s before the change: %w", req.Kind.Kind, err)
	}
	return policy, equality.Semantic.DeepEqual(specOf(before), specOf(policy)), nil
}

func specOf(o client.Object) any {
	switch p := o.(type) {
	case *hubv1.Placement:
		return p.Spec
	case *hubv1.ClusterPlacement:
		return p.Spec
	case *hubv1.OverridePolicy:
		return p.Spec
	case *hubv1.ClusterOverridePolicy:
		return p.Spec
	case *hubv1.FederatedOperator:
		return p.Spec
	case hubv1.BundleObject:
		return *p.BundleSpec()
	}
	return nil
}

func (r *Reviewer) reviewPlacement(ctx context.Context, p hubv1.PlacementObject, who author) ([]string, error) {
	needs, err := r.toWrite(p)
	if err != nil {
		return nil, err
	}
	accounts, err := r.accounts(ctx, p)
	if err != nil {
		return nil, err
	}
	clusters, err := r.placing(ctx, &p.PlacementSpec().Clusters)
	if err != nil {
		return nil, err
	}
	if err := r.demand(ctx, who, slices.Concat(needs, accounts, adoption(p.PlacementSpec()), clusters)); err != nil {
		return nil, err
	}
	if err := r.options.Readable(p); err != nil {
		return nil, &refusal{text: err.Error()}
	}
	warnings, err := reviewRollout(p)
	if err != nil {
		return nil, err
	}
	outranked, err := r.outranked(ctx, p)
	return append(warnings, outranked...), err
}

// outranked warns that enforced ClusterPlacements may select the same objects as a namespaced placement.
func (r *Reviewer) outranked(ctx context.Context, p hubv1.PlacementObject) ([]string, error) {
	if p.GetNamespace() == "" {
		return nil, nil
	}
	var list hubv1.ClusterPlacementList
	if err := r.options.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing ClusterPlacements: %w", err)
	}
	var namespace corev1.Namespace
	if err := r.options.Client.Get(ctx, client.ObjectKey{Name: p.GetNamespace()}, &namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", p.GetNamespace(), err)
	}
	all := make([]hubv1.PlacementObject, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	var names []string
	for _, enforced := range placement.OutrankedBy(p, namespace.Labels, all) {
		names = append(names, enforced.GetName())
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	return []string{fmt.Sprintf("enforced ClusterPlacements select the same objects and have precedence over this placement at any priority: %s",
		someOf(names, ", "))}, nil
}
