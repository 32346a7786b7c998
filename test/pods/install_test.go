package pods

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	release  = "hanse"
	olderTag = "older"
)

// TestHanseInstalledByHelm has the steps in the life of a hub, from the installation to the uninstallation.
func TestHanseInstalledByHelm(t *testing.T) {
	if suite.impossible != "" {
		t.Skip(suite.impossible)
	}
	for _, step := range []struct {
		sentence string
		run      func(t *testing.T)
	}{
		{"the chart of an older commit has two pods Ready", olderHubIsInstalled},
		{"its pods fan 200 objects out to three members", objectsAreFannedOut},
		{"an upgrade under changes loses none, and objects and definitions stay", hubIsUpgraded},
		{"hansectl of the older commit understands the newer hub", olderHansectlWorks},
		{"a restart of the pods under changes loses none and writes nothing else", podsAreRestarted},
		{"a rollback to the older hub and back loses no change", hubIsRolledBack},
		{"a drain evicts the leader, but not both pods at once", leaderIsDrained},
		{"helm test passes", chartIsTested},
		{"the webhook refuses a wrong policy through its Service", webhookRefuses},
		{"metrics are for clients with the right", metricsAreGuarded},
		{"views of members go through their Service", viewsAreServed},
		{"an operator that is a pod on a member acts on the hub's custom resource", operatorActs},
		{"JobSet by the chart of its authors runs a JobSet, and keeps the certificates that it makes", jobSetRuns},
		{"cert-manager by the chart of its authors issues a Certificate on the real node", certificateIsIssued},
		{"hansectl dashboard opens the console of a pod", consoleIsOpened},
		{"helm uninstall leaves members as they are, and no finalizer on the hub", hubIsUninstalled},
	} {
		if !t.Run(step.sentence, step.run) {
			t.FailNow() // the next step depends on this one
		}
	}
}

func older(names ...string) string { return filepath.Join(append([]string{suite.older}, names...)...) }

// helmUpgrade installs or upgrades the hub chart with default values and the kinds of the suite. It waits until the
// pods are ready.
func helmUpgrade(t *testing.T, chart string, more ...string) {
	t.Helper()
	values, err := json.Marshal(kinds)
	must(t, err)
	_, err = suite.HelmCommand(t.Context(), suite.Hub, append([]string{
		"upgrade", "--install", release, chart, "--namespace", hubv1.SystemNamespace, "--create-namespace",
		"--set-json", "federatedKinds=" + string(values), "--wait", "--timeout", "3m",
	}, more...)...)
	must(t, err)
}

func olderHubIsInstalled(t *testing.T) {
	load(t, suite.Hub.Name, older("images", "hanse-hub.tar"), older("images", "hansectl.tar"),
		filepath.Join(suite.images, "hanse-hub.tar"), filepath.Join(suite.images, "hansectl.tar"))
	helmUpgrade(t, older("charts", "hanse-hub"), "--set", "image.tag="+olderTag, "--set", "uninstallHook.image.tag="+olderTag)
	must(t, podsReady(t.Context(), olderTag))
	// A node learns the addresses behind a Service only after the pods are ready, and refuses connections until then.
	eventually(t, func() error { return review(t.Context(), metav1.NamespaceDefault) })
}

func load(t *testing.T, cluster string, images ...string) {
	t.Helper()
	_, err := suite.LabCommand(t.Context(), append([]string{"load", cluster}, images...)...)
	must(t, err)
}

// podsReady returns nil if exactly two pods of the hub are ready, and both have images with this tag.
func podsReady(ctx context.Context, tag string) error {
	pods, err := hubPods(ctx)
	if err != nil {
		return err
	}
	ready := 0
	for _, p := range pods {
		for _, c := range p.Status.Conditions {
			right := tag == "" || strings.HasSuffix(p.Spec.Containers[0].Image, ":"+tag)
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && right {
				ready++
			}
		}
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				return fmt.Errorf("pod %s was restarted: %+v", p.Name, c.LastTerminationState)
			}
		}
	}
	if ready != 2 || len(pods) != 2 {
		return fmt.Errorf("%d of %d pods are ready with the tag %q, want 2", ready, len(pods), tag)
	}
	return nil
}

// hubPods returns the pods of the hub that are not terminating.
func hubPods(ctx context.Context) ([]corev1.Pod, error) {
	pods, err := allHubPods(ctx)
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), err
}

// allHubPods returns the pods of the hub, including terminating ones.
func allHubPods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := suite.Hub.List(ctx, &list, client.InNamespace(hubv1.SystemNamespace), client.MatchingLabels{"app.kubernetes.io/name": "hanse-hub"})
	return list.Items, err
}

func objectsAreFannedOut(t *testing.T) {
	ctx := t.Context()
	for _, name := range members {
		must(t, suite.InstallMember(ctx, suite.Members[name], kinds))
		must(t, suite.Join(ctx, suite.Members[name], nil))
	}
	must(t, suite.Hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: loaded}}))
	must(t, suite.Hub.Create(ctx, &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: loaded, Name: "all"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": loaded}}}},
			Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
		},
	}))
	for i := range objects {
		must(t, suite.Hub.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: loaded, Name: loadedName(i), Labels: map[string]string{"app": loaded}},
			Data:       map[string]string{"value": "0"},
		}))
	}
	eventually(t, func() error { return applied(ctx) })
}

// applied returns nil if every member has a copy of every object.
func applied(ctx context.Context) error {
	var list hubv1.ResourceBindingList
	if err := suite.Hub.List(ctx, &list, client.InNamespace(loaded)); err != nil {
		return err
	}
	count := 0
	for _, b := range list.Items {
		if b.Status.Summary.Applied == int32(len(members)) {
			count++
		}
	}
	if count != objects {
		return fmt.Errorf("%d of %d bindings are applied everywhere, want %d", count, len(list.Items), objects)
	}
	return nil
}

func hubIsUpgraded(t *testing.T) {
	before := uids(t)
	changed(t, func() { helmUpgrade(t, filepath.Join(suite.Charts, "hanse-hub")) })
	must(t, podsReady(t.Context(), ""))
	same(t, before)
	must(t, applied(t.Context()))
}

// uids returns the UIDs of the objects that an upgrade must not replace, by kind and name. The objects are definitions,
// hub objects, policies, bindings and copies.
func uids(t *testing.T) map[string]types.UID {
	t.Helper()
	ctx := t.Context()
	out := map[string]types.UID{}
	for where, list := range map[string]client.ObjectList{
		"definition": partial("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
		"object":     partial("", "v1", "ConfigMap"),
		"member":     partial("hanse.dev", "v1alpha1", "MemberCluster"),
		"placement":  partial("hanse.dev", "v1alpha1", "Placement"),
		"binding":    partial("hanse.dev", "v1alpha1", "ResourceBinding"),
	} {
		must(t, addUIDs(ctx, suite.Hub, where, list, out))
	}
	for _, name := range members {
		must(t, addUIDs(ctx, suite.Members[name], "copy on "+name, partial("", "v1", "ConfigMap"), out))
	}
	return out
}

func partial(group, version, kind string) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion, list.Kind = group+"/"+version, kind+"List"
	if group == "" {
		list.APIVersion = version
	}
	return list
}

func addUIDs(ctx context.Context, c client.Client, where string, list client.ObjectList, to map[string]types.UID) error {
	if err := c.List(ctx, list); err != nil {
		return err
	}
	for _, item := range list.(*metav1.PartialObjectMetadataList).Items {
		if item.Namespace == "" || item.Namespace == loaded {
			to[where+" "+item.Name] = item.UID
		}
	}
	return nil
}

// same fails the test if one of the objects was deleted or replaced.
func same(t *testing.T, before map[string]types.UID) {
	t.Helper()
	now := uids(t)
	for name, uid := range before {
		if now[name] != uid {
			t.Errorf("%s had UID %s, now %q", name, uid, now[name])
		}
	}
}

func olderHansectlWorks(t *testing.T) {
	for _, args := range [][]string{{"doctor"}, {"status", "configmap", loadedName(0), "-n", loaded}, {"clusters"}} {
		// A pod of an older chart has no preStop hook, and ends while clients still connect to it. For a moment,
		// hansectl then reports that the webhook does not answer. The older hansectl has doctor for problems --checks.
		eventually(t, func() error {
			out, err := exec.CommandContext(t.Context(), older("bin", "hansectl"), append(args, "--kubeconfig", suite.Hub.Kubeconfig)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("hansectl %s: %w: %s", strings.Join(args, " "), err, out)
			}
			return nil
		})
	}
}

func podsAreRestarted(t *testing.T) {
	before := uids(t)
	changed(t, func() { reviewed(t, func() { restart(t) }) })
	same(t, before)
}

// restart replaces the pods of the hub. It returns when the new pods are ready and the old ones are gone.
func restart(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"rollout", "restart"}, {"rollout", "status", "--timeout=2m"}} {
		_, err := suite.Kubectl(t.Context(), suite.Hub, append(args, "deployment/hanse-hub", "-n", hubv1.SystemNamespace)...)
		must(t, err)
	}
	settled(t)
}

// ended returns nil if no pod of the hub is terminating.
func ended(ctx context.Context) error {
	pods, err := allHubPods(ctx)
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s is ending", p.Name)
		}
	}
	return err
}

// reviewed runs do while a client creates policies as dry runs. The webhook must review each of them.
func reviewed(t *testing.T, do func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	type result struct {
		asked  int
		faults []string
	}
	reviewing := make(chan result, 1)
	go func() {
		var r result
		for ctx.Err() == nil {
			r.asked++
			begin := time.Now()
			err := review(context.WithoutCancel(ctx), loaded)
			if err != nil {
				r.faults = append(r.faults, fmt.Sprintf("at %s, after %.1f s: %v", begin.Format(time.TimeOnly), time.Since(begin).Seconds(), err))
			}
		}
		reviewing <- r
	}()
	do()
	end()
	r := <-reviewing
	t.Logf("the webhook was asked %d times", r.asked)
	for _, fault := range r.faults {
		t.Errorf("a policy was not reviewed %s", fault)
	}
}

// review creates a policy as a dry run, so that the webhook reviews it.
func review(ctx context.Context, namespace string) error {
	return suite.Hub.Create(ctx, &hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "reviewed-"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: "none"}},
			Clusters:          hubv1.ClusterSelection{Names: []string{frankfurt}},
		},
	}, client.DryRunAll)
}

func hubIsRolledBack(t *testing.T) {
	changed(t, func() {
		_, err := suite.HelmCommand(t.Context(), suite.Hub, "rollback", release, "1", "--namespace", hubv1.SystemNamespace, "--wait", "--timeout", "3m")
		must(t, err)
		eventually(t, func() error { return podsReady(t.Context(), olderTag) })
		helmUpgrade(t, filepath.Join(suite.Charts, "hanse-hub"))
	})
	must(t, podsReady(t.Context(), ""))
	must(t, applied(t.Context()))
}

func leaderIsDrained(t *testing.T) {
	ctx := t.Context()
	clients, err := kubernetes.NewForConfig(suite.Hub.Config)
	must(t, err)
	evict := func(pod string) error {
		return clients.PolicyV1().Evictions(hubv1.SystemNamespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: pod}})
	}
	settled(t) // pods of the last step may still be terminating, and one of them may be the leader
	changed(t, func() {
		old := leader(t)
		pods, err := hubPods(ctx)
		must(t, err)
		must(t, evict(old))
		for _, p := range pods {
			if p.Name == old {
				continue
			}
			if err := evict(p.Name); !apierrors.IsTooManyRequests(err) {
				t.Errorf("the eviction of the last pod %s answers %v, want 429 by the PodDisruptionBudget", p.Name, err)
			}
		}
		eventually(t, func() error {
			if now := leader(t); now == old || now == "" {
				return errors.New("no other pod leads")
			}
			return podsReady(ctx, "")
		})
	})
	settled(t)
}

// settled waits until two pods of the hub are ready, one of them is the leader, and no other pod is left.
func settled(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	eventually(t, func() error {
		if err := ended(ctx); err != nil {
			return err
		}
		if err := podsReady(ctx, ""); err != nil {
			return err
		}
		pods, err := hubPods(ctx)
		if now := leader(t); err == nil && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == now }) {
			return fmt.Errorf("%q leads, which is none of the pods", now)
		}
		return err
	})
}

// leader returns the name of the pod that holds the leader's Lease.
func leader(t *testing.T) string {
	t.Helper()
	var lease coordinationv1.Lease
	must(t, suite.Hub.Get(t.Context(), types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: "hanse-hub"}, &lease))
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return name
}

func hubIsUninstalled(t *testing.T) {
	ctx := t.Context()
	before := uids(t)
	_, err := suite.HelmCommand(ctx, suite.Hub, "uninstall", release, "--namespace", hubv1.SystemNamespace, "--wait", "--timeout", "3m")
	must(t, err)
	same(t, before)
	pods, err := hubPods(ctx)
	must(t, err)
	if len(pods) > 0 {
		t.Errorf("pods are left: %d", len(pods))
	}
	for kind, list := range map[string]*metav1.PartialObjectMetadataList{
		"MemberCluster": partial("hanse.dev", "v1alpha1", "MemberCluster"), "ResourceBinding": partial("hanse.dev", "v1alpha1", "ResourceBinding"),
	} {
		must(t, suite.Hub.List(ctx, list))
		for _, item := range list.Items {
			if len(item.Finalizers) > 0 {
				t.Errorf("%s %s has the finalizers %v", kind, item.Name, item.Finalizers)
			}
		}
	}
}
