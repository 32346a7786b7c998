package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view"
)

// runChecks checks the hub and its members. If the API server does not serve the kinds of Hanse, this is the only
// check.
func (h *hub) runChecks(ctx context.Context) (view.Checks, error) {
	c, address, err := h.connect()
	if err != nil {
		return view.Checks{}, err
	}
	done := view.Checks{Checks: []view.Check{h.checkAPI(address)}}
	if done.Failed() == 0 {
		done.Checks = append(done.Checks, h.checkHub(ctx, c)...)
		done.Checks = append(done.Checks, checkWebhook(ctx, c)...)
		done.Checks = append(done.Checks, checkMembers(ctx, c)...)
	}
	return done, nil
}

// checkAPI checks whether the API server serves every kind of Hanse.
func (h *hub) checkAPI(address string) view.Check {
	check := view.Check{Name: "hub API", Result: view.FindingFailed, Message: address}
	served, err := h.servedNow()
	switch {
	case apierrors.IsNotFound(err):
		check.Message, check.Do = address+" does not serve "+hubv1.GroupVersion.String(), "install the chart hanse-hub there, or name the hub by --kubeconfig or --context"
		return check
	case err != nil:
		check.Message = err.Error()
		return check
	}
	var missing []string
	for _, resource := range []string{
		"memberclusters", "placements", "clusterplacements", "overridepolicies", "clusteroverridepolicies", "bundles", "clusterbundles", "federatedoperators",
		"resourcebindings", "clusterresourcebindings", "setrollouts",
	} {
		if !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
			missing = append(missing, resource)
		}
	}
	if missing != nil {
		check.Message, check.Do = address+" does not serve "+strings.Join(missing, ", "), "upgrade the chart hanse-hub, which has the definitions"
		return check
	}
	check.Result = view.FindingOK
	return check
}

// servedNow asks the API server for the kinds of Hanse, without using a cache.
func (h *hub) servedNow() (*metav1.APIResourceList, error) {
	config, err := h.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the hub: %w", err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub %s: %w", config.Host, err)
	}
	return client.ServerResourcesForGroupVersion(hubv1.GroupVersion.String())
}

// checkHub checks whether a hub runs, by its Lease, and compares the hub's version and clock with those of hansectl.
func (h *hub) checkHub(ctx context.Context, c client.Client) []view.Check {
	silence, err := h.silence(ctx, c)
	lead, readErr := readHolder(ctx, c)
	switch {
	case apierrors.IsForbidden(readErr):
		return []view.Check{{Name: "hub", Result: view.FindingUnknown, Message: readErr.Error(), Do: "ask for the Role hanse-view in " + hubv1.SystemNamespace}}
	case err != nil:
		return []view.Check{{Name: "hub", Result: view.FindingFailed, Message: err.Error()}}
	case silence != nil:
		return []view.Check{{Name: "hub", Result: view.FindingFailed, Message: silence.Text(time.Now())}}
	}
	leads := view.Check{Name: "hub", Result: view.FindingOK, Message: lead.name + " leads"}
	if lead.name == "" { // the last leader has released the Lease
		leads = view.Check{
			Name: "hub", Result: view.FindingWarning, Message: "no hub leads now: the last one has ended, and another one takes over within seconds",
			Do: "hansectl problems --checks again, and if it stays so: kubectl get pods -n " + hubv1.SystemNamespace,
		}
	}
	v := h.hubVersion(ctx)
	return []view.Check{
		leads,
		view.CheckVersions(h.version, v.Version, v.Unknown),
		view.CheckClock(lead.renewed, time.Now()),
	}
}

// checkWebhook checks the configuration of the webhook. It also sends a dry run for a new placement, so that the API
// server calls the webhook.
func checkWebhook(ctx context.Context, c client.Client) []view.Check {
	var config admissionv1.ValidatingWebhookConfiguration
	if missing := readWebhooks(ctx, c, &config, view.Check{
		Name: "webhook", Result: view.FindingWarning, Message: "there is none: authors' rights are not checked, and faults of policies are found later",
		Do: "set webhook.enabled of the chart hanse-hub",
	}); missing != nil {
		return []view.Check{*missing}
	}
	var out []view.Check
	for i := range config.Webhooks {
		out = append(out, view.CheckCA("webhook", config.Webhooks[i].ClientConfig.CABundle, time.Now()))
	}
	answer, stored := askWebhook(ctx, c)
	return append(append(out, answer), checkAuthors(ctx, c, stored)...)
}

// checkAuthors checks the webhook that records authors. stored is the placement that the API server would have stored,
// or nil if it refused the dry run.
func checkAuthors(ctx context.Context, c client.Client, stored *hubv1.Placement) []view.Check {
	var config admissionv1.MutatingWebhookConfiguration
	if missing := readWebhooks(ctx, c, &config, view.Check{
		Name: "author webhook", Result: view.FindingOK, Message: "it is off: set webhook.authors of the chart hanse-hub to record who changes a policy",
	}); missing != nil {
		return []view.Check{*missing}
	}
	var out []view.Check
	for i := range config.Webhooks {
		out = append(out, view.CheckCA("author webhook", config.Webhooks[i].ClientConfig.CABundle, time.Now()))
	}
	switch {
	case stored == nil:
		return out
	case stored.Annotations[hubv1.ChangedByAnnotation] == "":
		return append(out, view.Check{Name: "author webhook", Result: view.FindingFailed, Message: "it does not record who changes a policy", Do: reachWebhook})
	}
	return append(out, view.Check{Name: "author webhook", Result: view.FindingOK, Message: "it answers"})
}

// readWebhooks reads the hub's webhook configuration of one kind. If it cannot be read, readWebhooks returns a check:
// the check none if there is no configuration.
func readWebhooks(ctx context.Context, c client.Client, config client.Object, none view.Check) *view.Check {
	err := c.Get(ctx, client.ObjectKey{Name: hubName}, config)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return &none
	}
	check := unread(none.Name, err)
	return &check
}

const reachWebhook = "look whether the hub runs and whether the API server reaches the Service hanse-hub-webhook or webhook.url"

// askWebhook sends a dry run for a new placement. It also returns the placement, unless the API server refused it.
func askWebhook(ctx context.Context, c client.Client) (view.Check, *hubv1.Placement) {
	probe := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "hansectl-check-"}}
	probe.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: "hansectl-check"}}
	probe.Spec.Clusters.Names = []string{"hansectl-check"}
	err := c.Create(withoutWarnings(ctx), probe, client.DryRunAll)
	switch {
	case err == nil:
		return view.Check{Name: "webhook", Result: view.FindingOK, Message: "it answers"}, probe
	// The API server writes this text into the error if it cannot call a webhook. The error's reason InternalError would
	// also match other errors.
	case strings.Contains(err.Error(), "failed calling webhook"):
		return view.Check{
			Name: "webhook", Result: view.FindingFailed, Message: err.Error(),
			Do: reachWebhook,
		}, nil
	case strings.Contains(err.Error(), "admission webhook"):
		return view.Check{Name: "webhook", Result: view.FindingOK, Message: "the server answers, but refuses the probe: " + err.Error()}, nil
	}
	return view.Check{Name: "webhook", Result: view.FindingUnknown, Message: "the request failed: " + err.Error()}, nil
}

// checkMembers checks each member, and the kinds that the hub may not write on members.
func checkMembers(ctx context.Context, c client.Client) []view.Check {
	members, err := listClusters(ctx, c)
	if err != nil {
		return []view.Check{unread("members", err)}
	}
	var out []view.Check
	if len(members) == 0 {
		out = append(out, view.Check{Name: "members", Result: view.FindingWarning, Message: "there are none", Do: "hansectl join NAME --member-kubeconfig FILE"})
	}
	for i := range members {
		out = append(out, view.CheckMember(&members[i], time.Now()))
	}
	unaccepted, checks := checkPlacements(ctx, c)
	out = append(out, checks...)
	lacks, lost := view.Lacks{}, view.LostRevisions{}
	if err := eachBinding(ctx, c, func(b hubv1.BindingObject) {
		lacks.Add(b)
		lost.Add(b)
	}); err != nil {
		return append(out, unread("grants", err))
	}
	return append(append(out, lacks.Checks(unaccepted)...), lost.Checks()...)
}

// checkPlacements checks whether the hub accepts all placements. It also returns the placements that the hub does not
// accept.
func checkPlacements(ctx context.Context, c client.Client) (*view.Unaccepted, []view.Check) {
	found := &view.Unaccepted{}
	for _, list := range []client.ObjectList{&hubv1.PlacementList{}, &hubv1.ClusterPlacementList{}} {
		if err := c.List(ctx, list); err != nil {
			return found, []view.Check{unread("placements", err)}
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			p := o.(hubv1.PlacementObject)
			found.Add(decide.OwnerOf(decide.ReferenceTo(p)).String(), p.PlacementStatus().Conditions)
			return nil
		})
	}
	return found, found.Checks()
}

func unread(name string, err error) view.Check {
	if apierrors.IsForbidden(err) {
		return view.Check{Name: name, Result: view.FindingUnknown, Message: "not checked, because you may not read what is needed", Do: Advice(err)}
	}
	return view.Check{Name: name, Result: view.FindingFailed, Message: err.Error()}
}
