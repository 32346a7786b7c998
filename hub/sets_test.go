package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/membership/shard"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// another starts a further member, joins it under this name, and returns its client.
func (w *world) another(name string) client.Client {
	w.Helper()
	cluster := serve(w.T, &envtest.Environment{})
	c, err := client.New(cluster, client.Options{Scheme: w.hub.Scheme()})
	must(w.T, err)
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cluster.Host, CertificateAuthorityData: cluster.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: cluster.CertData, ClientKeyData: cluster.KeyData}},
	})
	must(w.T, err)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}, Data: map[string][]byte{"kubeconfig": kubeconfig}})
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	m.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name}}}
	w.create(m)
	eventually(w.T, 30*time.Second, func() error {
		if err := w.hub.Get(w.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(m.Status.Conditions, hubv1.ConditionReady) {
			return fmt.Errorf("the member is not ready: %+v", m.Status.Conditions)
		}
		return nil
	})
	return c
}

// content reads the value of a ConfigMap of the namespace shop, and its resourceVersion. Both are empty if there is
// none.
func (w *world) content(on client.Client, name string) (value, version string) {
	w.Helper()
	var m corev1.ConfigMap
	if err := on.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: name}, &m); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return m.Data["value"], m.ResourceVersion
}

// config returns the manifest of a ConfigMap.
func config(name, value string) runtime.RawExtension {
	return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"value":%q}}`, name, value)}
}

// change sets the manifests of a bundle.
func (w *world) change(b *hubv1.Bundle, manifests ...runtime.RawExtension) {
	w.Helper()
	before := b.DeepCopy()
	b.Spec.Manifests = manifests
	must(w.T, w.hub.Patch(w.Context(), b, client.MergeFrom(before)))
}

// rollsOut creates a placement that sends bundles of the namespace shop to all members: first to one member each, in
// this order, and then to the rest.
func (w *world) rollsOut(first ...string) {
	w.Helper()
	w.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bundles"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "delete"}},
	}})
	w.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "bundles"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "bundles"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop", Name: "default"}},
	})
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.BundleKind}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	p.Spec.AllowEmpty = true
	p.Spec.Rollout = &hubv1.RolloutPolicy{
		OnFailure: hubv1.FailureRollback, SettleSeconds: ptr.To[int32](0), HealthGate: hubv1.RolloutGate{MinObservedSeconds: ptr.To[int32](0)},
	}
	for _, name := range first {
		p.Spec.Rollout.Waves = append(p.Spec.Rollout.Waves, hubv1.RolloutWave{Name: name, Clusters: &hubv1.RuleClusters{Names: []string{name}}})
	}
	p.Spec.Rollout.Waves = append(p.Spec.Rollout.Waves, hubv1.RolloutWave{Name: "rest"})
	w.create(p)
}

// older pretends that a replica of an earlier version of the hub runs, until the returned function is called. None of
// the members belongs to this replica.
func (w *world) older(members ...string) (end func()) {
	w.Helper()
	var leases coordinationv1.LeaseList
	must(w.T, w.hub.List(w.Context(), &leases, client.InNamespace(hubv1.SystemNamespace), client.MatchingLabels{"hanse.dev/lease": "replica"}))
	if len(leases.Items) != 1 {
		w.Fatalf("there are %d Leases of replicas", len(leases.Items))
	}
	present, seat := leases.Items[0].Labels["hanse.dev/replica"], ""
	for i := 0; seat == "" || slices.ContainsFunc(members, func(m string) bool { return shard.Owner(m, []string{present, seat}) != present }); i++ {
		seat = fmt.Sprintf("older-%d", i)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubv1.SystemNamespace, Name: "hanse-replica-older", Labels: map[string]string{"hanse.dev/lease": "replica", "hanse.dev/replica": seat},
	}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("older"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NowMicro())}
	w.create(lease)
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(3 * time.Second); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
				_ = w.hub.Update(ctx, lease)
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-ended
		must(w.T, w.hub.Delete(w.Context(), lease))
	})
}

// TestABundleIsTakenAsTheClustersHoldItWhenTheLastOlderReplicaHasEnded upgrades a hub whose bundle has been rolled out
// object by object.
func TestABundleIsTakenAsTheClustersHoldItWhenTheLastOlderReplicaHasEnded(t *testing.T) {
	apiserver.Needed(t)
	ctrl.SetLogger(logr.Discard())
	w := startHub(t)
	ctx := t.Context()
	w.join()
	second := w.another("us")
	end := w.older("eu", "us")
	w.rollsOut("eu", "us")
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Spec.Manifests = []runtime.RawExtension{config("settings", "one"), config("other", "one")}
	w.create(b)
	holds := func(on client.Client, name, want string) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			if got, _ := w.content(on, name); got != want {
				return fmt.Errorf("%s has %q, want %q", name, got, want)
			}
			return nil
		})
	}
	for _, c := range []client.Client{w.member, second} {
		holds(c, "settings", "one")
		holds(c, "other", "one")
	}
	record := &hubv1.SetRollout{}
	read := func() error { return w.hub.Get(ctx, hubv1.ReferenceTo(b).SetRolloutKey(hubv1.SystemNamespace), record) }
	eventually(t, time.Minute, read)

	w.change(b, config("settings", "two"), config("other", "one"))
	holds(w.member, "settings", "two")
	holds(second, "settings", "two")
	eventually(t, time.Minute, func() error {
		id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
		var binding hubv1.ResourceBinding
		if err := w.hub.Get(ctx, id.BindingKey(), &binding); err != nil {
			return err
		}
		if r := binding.Spec.Rollout; r == nil || r.Phase != hubv1.RolloutComplete || r.Passed != 2 {
			return fmt.Errorf("the rollout of the object is %+v", r)
		}
		return nil
	})
	if must(t, read()); record.Spec.Rollout != nil {
		t.Fatalf("with an older replica, the hub decides on the bundle as a whole: %+v", record.Spec)
	}
	versions := func() (out []string) {
		for _, c := range []client.Client{w.member, second} {
			for _, name := range []string{"settings", "other"} {
				_, version := w.content(c, name)
				out = append(out, version)
			}
		}
		return out
	}
	before := versions()
	end()
	eventually(t, time.Minute, func() error {
		if err := read(); err != nil || record.Spec.Rollout == nil {
			return fmt.Errorf("the hub does not decide on the bundle as a whole yet: %w", err)
		}
		return nil
	})
	r := record.Spec.Rollout
	if r.Phase != hubv1.RolloutComplete || r.Passed != r.Revision || len(record.Spec.Clusters) != 2 {
		t.Errorf("the SetRollout has %+v", record.Spec)
	}
	for _, c := range record.Spec.Clusters {
		if !c.Adopted || c.Revision != r.Revision {
			t.Errorf("the entry is %+v", c)
		}
	}

	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("the members were written to (-before +after):\n%s", diff)
	}
	w.change(b, config("settings", "two"), config("added", "three"))
	for _, c := range []client.Client{w.member, second} {
		holds(c, "added", "three")
		holds(c, "other", "")
	}
	if _, now := w.content(second, "settings"); now != before[2] {
		t.Error("an object that has not changed was written")
	}
}

// TestABundleIsRolledOutAsAWhole changes a bundle on three members: it adds an object, changes one and drops one. The
// second member refuses the added object. All members then return to the bundle as it was.
func TestABundleIsRolledOutAsAWhole(t *testing.T) {
	apiserver.Needed(t)
	ctrl.SetLogger(logr.Discard())
	w := startHub(t)
	ctx := t.Context()
	w.join()
	second, third := w.another("us"), w.another("zz")
	members := map[string]client.Client{"eu": w.member, "us": second, "zz": third}
	w.rollsOut("eu", "us")
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Spec.Manifests = []runtime.RawExtension{config("settings", "one"), config("dropped", "one")}
	w.create(b)

	// phase waits for a phase of the rollout of the bundle, and for the contents of settings, dropped and added.
	phase := func(want hubv1.RolloutPhase, settings, dropped, added string, on ...string) *hubv1.SetRollout {
		t.Helper()
		record := &hubv1.SetRollout{}
		eventually(t, 90*time.Second, func() error {
			if err := w.hub.Get(ctx, hubv1.ReferenceTo(b).SetRolloutKey(hubv1.SystemNamespace), record); err != nil {
				return err
			}
			if record.Spec.Rollout == nil {
				return errors.New("the hub does not decide on the bundle as a whole")
			}
			var faults []error
			for _, name := range on {
				for object, value := range map[string]string{"settings": settings, "dropped": dropped, "added": added} {
					if got, _ := w.content(members[name], object); got != value {
						faults = append(faults, fmt.Errorf("%s on %s has %q, want %q", object, name, got, value))
					}
				}
			}
			if got := record.Spec.Rollout; got.Phase != want || faults != nil {
				return fmt.Errorf("the rollout is %+v, the clusters are %+v: %w", got, record.Spec.Clusters, errors.Join(faults...))
			}
			return nil
		})
		return record
	}
	all := []string{"eu", "us", "zz"}
	phase(hubv1.RolloutComplete, "one", "one", "", all...)
	_, untouched := w.content(third, "settings")

	must(t, second.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "added"}, Data: map[string]string{"value": "foreign"}}))
	w.change(b, config("settings", "two"), config("added", "two"))
	record := phase(hubv1.RolloutRolledBack, "one", "one", "", "eu", "zz")
	phase(hubv1.RolloutRolledBack, "one", "one", "foreign", "us")
	if record.Spec.Rollout.Failed != record.Spec.Rollout.Newest {
		t.Errorf("the rollout is %+v", record.Spec.Rollout)
	}
	if _, now := w.content(third, "settings"); now != untouched {
		t.Error("the third member was written to")
	}

	must(t, second.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "added"}}))
	w.change(b, config("settings", "three"), config("added", "three"))
	phase(hubv1.RolloutComplete, "three", "", "three", all...)
	eventually(t, 30*time.Second, func() error {
		err := w.hub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "dropped"}.ManifestName()}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the dropped object is still stored: %w", err)
		}
		return nil
	})

	must(t, w.hub.Delete(ctx, b))
	eventually(t, 60*time.Second, func() error {
		for _, name := range all {
			if got, _ := w.content(members[name], "settings"); got != "" {
				return fmt.Errorf("%s still has the object", name)
			}
		}
		err := w.hub.Get(ctx, hubv1.ReferenceTo(b).SetRolloutKey(hubv1.SystemNamespace), &hubv1.SetRollout{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the SetRollout is still there: %w", err)
		}
		return nil
	})
}
