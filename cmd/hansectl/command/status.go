package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/placement/rollout"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

func newStatus(h *hub) *cobra.Command {
	var out output
	var w window
	var watch, everywhere bool
	cmd := &cobra.Command{
		Use:   "status [KIND NAME | KIND/NAME]",
		Short: "Show objects of the hub: their clusters, their health there, and why other clusters were not chosen",
		Long: `Show one object of the hub, with one row per cluster. For a Placement, ClusterPlacement, Bundle, ClusterBundle or
FederatedOperator, the command shows its objects, with one row each. Without a name, it shows the objects of the
namespace.

  status     where the merged status is: OnObject, BindingOnly ("On object" says why) or Pending
  GEN        generation of the hub object that the cluster holds / that the hub has
  REV        with a rollout: revision of the cluster's copy / newest revision
  APPLIED    whether the cluster holds the desired content; if no hub runs, hansectl computes the digest of that content
  READY      ready replicas / all replicas; ? marks the last known numbers
  HEALTH     health of the copy; ? marks the last known health, which the count HEALTHY leaves out
  AS OF      live, or how long ago the hub last observed the cluster; if no hub runs, at most how long ago
  Hub        no hub runs, and since when: all data is at least that old. It is shown within 20 s
  Regions    healthy clusters / all clusters, by region
  On object  numbers and conditions of the hub object's own status, and fields that cannot be merged
  Scheduled  the reason of the decision, if it is a special one, such as PlacementGone
  Not sent   labels, annotations, finalizers and owner references that the copies do not get
  Waiting    clusters for which the object waits
  Give up    how to abandon a cluster that a running hub has not observed for an hour

In a list, APPLIED and HEALTHY are the clusters where the object is applied or healthy / the clusters that shall hold
it. WHY has the first of the conditions Scheduled, Applied and Healthy that is not True, or selected clusters without
the object. -o wide adds the requested state, the time since its last change, UID and digest of the copy, and replicas
by region.

For an object that is not federated, the command shows why, and what to do. An object of a bundle is found by its
binding, also if the hub does not serve its kind.

With --watch, the status is shown again whenever it changes, until you press Ctrl-C or the object and its copies are
deleted. A terminal shows it in place; a file receives one status after the other.

KIND is a kind, a plural or a short name, with its group if it needs one: prometheus,
prometheuses.monitoring.coreos.com.`,
		Example: `  hansectl status prometheus web -n monitoring

  # Follow a rollout
  hansectl status prometheus web -n monitoring --watch

  # With UIDs, digests and how long each row has been so
  hansectl status prometheus web -n monitoring -o wide

  # The objects of a namespace, and those of a placement
  hansectl status -n monitoring
  hansectl status placement/metrics -n monitoring

  # A kind that two API groups have
  hansectl status clusters.postgresql.cnpg.io orders -n shop

  # For a script
  hansectl status deployment/web -o json | jq '.summary'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return objectArguments(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			if many := len(args) == 0; everywhere && !many {
				return usageError(cmd, errors.New("--all-namespaces and a name exclude each other"))
			} else if many || hasMany(strings.Split(args[0], "/")[0]) {
				if watch || out.format == "wide" {
					return usageError(cmd, errors.New("--watch and -o wide need one object, other than a placement, bundle or operator"))
				}
				return h.statusOfMany(cmd.Context(), &w, out, args, everywhere)
			}
			kind, name := kindAndName(args)
			look, err := h.statusOf(cmd.Context(), &w, kind, name)
			if err != nil {
				return err
			}
			if watch {
				return h.watchStatus(cmd.Context(), out, look)
			}
			found, err := look(cmd.Context())
			if err != nil {
				return err
			}
			return out.print(h.streams.Out, found)
		},
		ValidArgsFunction: h.completeObjects,
	}
	out.addTo(cmd, "wide", "name")
	w.addTo(cmd.Flags())
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "Show the objects of all namespaces, and cluster-scoped objects.")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Show the status again whenever it changes, until you press Ctrl-C or the object no longer exists.")
	return cmd
}

// statusOf returns a function that reads the status of an object. The returned function returns errNoObject if neither
// the object nor its binding exists.
func (h *hub) statusOf(ctx context.Context, w *window, kind, name string) (func(context.Context) (view.Status, error), error) {
	c, err := h.reader(w)
	if err != nil {
		return nil, err
	}
	id, version, err := h.identify(ctx, c, kind, name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (view.Status, error) { return h.status(ctx, c, id, version) }, nil
}

// hasMany reports whether the kind is a placement, a bundle or an operator, whose status shows many objects.
func hasMany(kind string) bool {
	return emptyPlacement(kind) != nil || emptyBundle(kind, client.ObjectKey{}) != nil
}

// statusOfMany shows the objects of a placement, of a bundle, of a namespace, or of all namespaces.
func (h *hub) statusOfMany(ctx context.Context, w *window, out output, args []string, everywhere bool) error {
	c, err := h.reader(w)
	if err != nil {
		return err
	}
	namespace := ""
	found := view.Objects{Objects: []view.ObjectSummary{}}
	wanted := func(hubv1.BindingObject) bool { return true }
	switch {
	case len(args) > 0 && emptyPlacement(strings.Split(args[0], "/")[0]) == nil:
		kind, name := kindAndName(args)
		return h.statusOfBundle(ctx, c, out, kind, name)
	case len(args) > 0:
		kind, name := kindAndName(args)
		placement := emptyPlacement(kind)
		if err := h.readPlacement(ctx, c, placement, name); err != nil {
			return err
		}
		namespace, found.Placement = placement.GetNamespace(), view.SummaryOfPlacement(placementKind(placement), placement)
		wanted = func(b hubv1.BindingObject) bool { return rollout.Follows(b, placement) }
	case !everywhere:
		if namespace, _, err = h.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return fmt.Errorf("finding the namespace: %w", err)
		}
	}
	if _, err := h.warnOfSilence(ctx, c); err != nil {
		return err
	}
	visit := func(b hubv1.BindingObject) {
		if wanted(b) {
			found.Objects = append(found.Objects, view.SummaryOf(b))
		}
	}
	if namespace != "" {
		err = eachBindingIn(ctx, c, namespace, visit)
	} else {
		err = eachBinding(ctx, c, visit)
	}
	if meta.IsNoMatchError(err) {
		return errNoHub
	} else if err != nil {
		return err
	}
	found.Sort()
	return out.print(h.streams.Out, found)
}

// errNoObject means that the hub has neither the object nor a binding for it.
var errNoObject = errors.New("the hub has no")

// noObject returns errNoObject with the name of the object. If a bundle contains the object, the error names the
// bundle. If the user has named no namespace, the error suggests to look in another namespace.
func (h *hub) noObject(ctx context.Context, c client.Client, id hubv1.ObjectIdentity) error {
	if of := bundleWith(ctx, c, id); of != "" {
		return fmt.Errorf("%w %s: %s contains the object, but no placement selects it or the hub has not stored it yet", errNoObject, id, of)
	}
	return fmt.Errorf("%w %s%s", errNoObject, id, h.elsewhere(id.Namespace))
}

// elsewhere returns the end of an error message: a hint to look in another namespace. It returns an empty text if the
// user has named a namespace.
func (h *hub) elsewhere(namespace string) string {
	if namespace == "" || *h.flags.Namespace != "" {
		return ""
	}
	return " (look in another namespace with -n)"
}

func (h *hub) status(ctx context.Context, c client.Client, id hubv1.ObjectIdentity, version string) (found view.Status, err error) {
	binding, err := readBinding(ctx, c, id)
	if err != nil {
		return found, err
	}
	object, err := h.template(ctx, c, id, version, binding)
	unread := err != nil && binding != nil && ctx.Err() == nil
	if unread { // such as an object of a bundle, or of a kind with a dead conversion webhook: only the binding is shown
		h.warn(fmt.Sprintf("warning: %v\n", err))
		object, err = view.Unread(binding), nil
	}
	if err != nil {
		return found, err
	}
	if object == nil && binding == nil {
		return found, h.noObject(ctx, c, id)
	}
	var members hubv1.MemberClusterList
	if err := h.unlessForbidden(c.List(ctx, &members), "regions and states of clusters are missing"); err != nil {
		return found, fmt.Errorf("listing MemberClusters: %w", err)
	}
	in := view.StatusInput{ID: id, Object: object, Binding: binding, Members: members.Items}
	if in.Silence, err = h.silence(ctx, c); err != nil {
		return found, err
	}
	if in.Silence != nil && object != nil && !unread && object.GetDeletionTimestamp() == nil && binding != nil {
		if in.Digests, err = h.digests(ctx, c, object, binding, members.Items); err != nil {
			return found, err
		}
	}
	if in.BundleRollout, err = h.bundleRollout(ctx, c, binding); err != nil {
		return found, err
	}
	in.Blind, in.Now = h.blind, time.Now()
	found = view.Of(in)
	if binding == nil {
		around, err := h.surroundings(ctx, c, id.Namespace)
		if err != nil {
			return found, err
		}
		found.NotFederated = view.WhyNot(id, object, around)
	}
	return found, nil
}

// digests returns, by cluster, the digest of the manifest that the hub would send now. It returns nil if the digests
// cannot be computed, for example because the user may not read all inputs.
func (h *hub) digests(ctx context.Context, c client.Client, object *unstructured.Unstructured, binding hubv1.BindingObject, members []hubv1.MemberCluster) (map[string]string, error) {
	spec, id := binding.BindingSpec(), hubv1.ObjectOf(binding)
	if object.GetUID() != spec.ObjectRef.UID {
		return nil, nil // the user has created the object anew, and the hub has not sent it yet
	}
	object, err := atPreferred(ctx, c, object)
	if object == nil || err != nil {
		return nil, err
	}
	settings := hubv1.LastSettings(binding)
	if len(settings.RestartPaths()) > 0 {
		return nil, nil // pod templates have digests that only the hub can compute
	}
	var clusters []*hubv1.MemberCluster
	for i := range members {
		clusters = append(clusters, &members[i])
	}
	strict := func(err error, _ string) error { return err } // the digest needs all inputs
	policies, err := inputs.Overrides(ctx, c, id.Namespace != "", id.Namespace, strict)
	var ns corev1.Namespace
	if err == nil && id.Namespace != "" {
		err = c.Get(ctx, client.ObjectKey{Name: id.Namespace}, &ns)
	}
	var others []string
	if err == nil {
		others, err = inputs.OtherVersions(ctx, c, object, clusters)
	}
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the policies that change %s: %w", id, err)
	}
	in := preview.RenderInput{Object: object, OtherVersions: others, Binding: spec, Policies: policies, NamespaceLabels: ns.Labels, Clusters: clusters}
	return view.Digests(in, binding.BindingStatus(), string(spec.ObjectRef.UID), settings.Apply.MemberOwnedFields), nil
}

// atPreferred returns an object at the version that the hub's API server prefers. It returns nil if the object was
// deleted. An object of a bundle is returned at the version of its manifest.
func atPreferred(ctx context.Context, c client.Client, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	id := hubv1.IdentityOf(object)
	if hubv1.BundleOf(object) != nil {
		return object, nil
	}
	mapping, err := c.RESTMapper().RESTMapping(id.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("finding the kind %s: %w", id.GroupKind(), err)
	}
	if preferred := mapping.GroupVersionKind.Version; preferred != object.GroupVersionKind().Version {
		return readObject(ctx, c, id, preferred)
	}
	return object, nil
}

// identify finds the kind that the user names in one of the forms that kubectl accepts. If the hub does not serve the
// kind, identify searches the objects of bundles.
func (h *hub) identify(ctx context.Context, c client.Client, kind, name string) (id hubv1.ObjectIdentity, version string, err error) {
	mapper, err := h.flags.ToRESTMapper()
	if err != nil {
		return id, "", fmt.Errorf("reading the kinds of the hub: %w", err)
	}
	mapping, err := findKind(mapper, kind)
	if meta.IsNoMatchError(err) {
		if id, version, ok, err := h.identifyBundled(ctx, c, kind, name); ok || err != nil {
			return id, version, err
		}
		return id, "", fmt.Errorf("the hub does not serve a kind %q: see kubectl api-resources%s", kind, didYouMean(h.similarKinds(kind)))
	}
	if err != nil {
		return id, "", fmt.Errorf("finding the kind %q on the hub: %w", kind, err)
	}
	id = hubv1.ObjectIdentity{Group: mapping.GroupVersionKind.Group, Kind: mapping.GroupVersionKind.Kind, Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if id.Namespace, _, err = h.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return id, "", fmt.Errorf("finding the namespace: %w", err)
		}
	}
	return id, mapping.GroupVersionKind.Version, nil
}

// findKind finds the kind that a text names. The text is plural.version.group, plural.group, a short name,
// Kind.version.group or Kind.group.
func findKind(mapper meta.RESTMapper, text string) (*meta.RESTMapping, error) {
	var gvk schema.GroupVersionKind
	full, resource := schema.ParseResourceArg(strings.ToLower(text))
	if full != nil {
		gvk, _ = mapper.KindFor(*full)
	}
	if gvk.Empty() {
		gvk, _ = mapper.KindFor(resource.WithVersion(""))
	}
	if !gvk.Empty() {
		return mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	fullKind, kind := schema.ParseKindArg(text)
	if fullKind != nil {
		if mapping, err := mapper.RESTMapping(fullKind.GroupKind(), fullKind.Version); err == nil {
			return mapping, nil
		}
	}
	return mapper.RESTMapping(kind)
}

// readObject reads an object of the hub. It returns nil if the object does not exist.
func readObject(ctx context.Context, c client.Client, id hubv1.ObjectIdentity, version string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(id.GroupKind().WithVersion(version))
	err := c.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", id, err)
	}
	hubObject(object)
	return object, nil
}

// readBinding reads the binding of an object. It returns nil if the object has no binding.
func readBinding(ctx context.Context, c client.Client, id hubv1.ObjectIdentity) (hubv1.BindingObject, error) {
	binding := hubv1.NewBinding(id.BindingKey())
	err := c.Get(ctx, id.BindingKey(), binding)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if meta.IsNoMatchError(err) {
		return nil, errNoHub
	}
	if err != nil {
		return nil, fmt.Errorf("reading the binding of %s: %w", id, err)
	}
	return binding, nil
}

// readPlaced reads the binding of an object. If there is no binding, it returns an error, which says whether the hub
// has the object.
func (h *hub) readPlaced(ctx context.Context, c client.Client, id hubv1.ObjectIdentity, version string) (hubv1.BindingObject, error) {
	binding, err := readBinding(ctx, c, id)
	if binding != nil || err != nil {
		return binding, err
	}
	object, err := readObject(ctx, c, id, version)
	if object == nil && err == nil {
		return nil, h.noObject(ctx, c, id)
	}
	// The hub may have the object although the object could not be read, because the user may lack the right to read it.
	return nil, fmt.Errorf("%s is on no cluster: see hansectl status", id)
}

// surroundings reads the placements that may select objects of a namespace, and the labels of this namespace.
func (h *hub) surroundings(ctx context.Context, c client.Client, namespace string) (view.Surroundings, error) {
	var around view.Surroundings
	var everywhere hubv1.ClusterPlacementList
	if err := h.unlessForbidden(c.List(ctx, &everywhere), "ClusterPlacements are not considered"); err != nil {
		return around, fmt.Errorf("listing ClusterPlacements: %w", err)
	}
	for i := range everywhere.Items {
		around.Placements = append(around.Placements, &everywhere.Items[i])
	}
	if namespace == "" {
		return around, nil
	}
	var here hubv1.PlacementList
	if err := c.List(ctx, &here, client.InNamespace(namespace)); err != nil {
		return around, fmt.Errorf("listing Placements in namespace %s: %w", namespace, err)
	}
	for i := range here.Items {
		around.Placements = append(around.Placements, &here.Items[i])
	}
	var ns corev1.Namespace
	if err := h.unlessForbidden(c.Get(ctx, client.ObjectKey{Name: namespace}, &ns), "labels of the namespace are not considered"); err != nil {
		return around, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	around.NamespaceLabels = ns.Labels
	return around, nil
}

// unlessForbidden prints a Forbidden error as a warning and returns nil, so that a tenant still sees the rest. It
// returns any other error. The argument "so" is a text for the warning: what the output lacks.
func (h *hub) unlessForbidden(err error, so string) error {
	if apierrors.IsForbidden(err) {
		text := fmt.Sprintf("warning: %s: %v", so, err)
		if advice := Advice(err); advice != "" {
			text += ": " + advice
		}
		h.warn(text + "\n")
		return nil
	}
	return err
}

// warn prints a warning. It prints equal warnings only once.
func (h *hub) warn(text string) {
	if h.warned[text] {
		return
	}
	if h.warned == nil {
		h.warned = map[string]bool{}
	}
	h.warned[text] = true
	fmt.Fprint(h.streams.ErrOut, text)
}
