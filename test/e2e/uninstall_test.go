package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestTheHubIsUninstalled must run after all tests that need a hub. Tests run in the order of file names, so no file
// with tests may sort after this file. From the start of this test, helm removes rights of the hub. Therefore only the
// earlier part of the audit log is compared with the roles.
func TestTheHubIsUninstalled(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	const objects = 3
	placeWidgets(t, ns)
	for i := range objects {
		must(t, suite.Hub.Create(ctx, widget(ns, fmt.Sprintf("w-%d", i))))
	}
	eventually(t, normal, func() error { return allApplied(ctx, ns, objects) })
	uids := memberUIDs(ctx, t, ns)
	log, err := os.Stat(suite.Hub.AuditLog)
	must(t, err)
	suite.audited = log.Size()

	t.Run("helm alone, under a running hub, withdraws nothing", func(t *testing.T) {
		must(t, suite.UninstallHub(ctx))
		eventually(t, time.Minute, func() error {
			if !suite.hub.Ended() {
				return errors.New("the hub goes on without an account")
			}
			return nil
		})
		sameCopies(t, uids, memberUIDs(ctx, t, ns))
		crdsStay(ctx, t)
		must(t, suite.InstallHub(ctx, kinds))
		startHub(t)
		must(t, suite.Hub.Patch(ctx, widget(ns, "w-0"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`))))
		for _, m := range members {
			eventually(t, normal, func() error { return replicasOn(ctx, m, widget(ns, "w-0"), 5) })
		}
		eventually(t, normal, func() error { return allApplied(ctx, ns, objects) })
		sameCopies(t, uids, memberUIDs(ctx, t, ns))
	})
	t.Run("hansectl uninstall, then helm: members keep everything and nothing hangs", func(t *testing.T) {
		must(t, suite.hub.Stop())
		_, err := suite.Hansectl(ctx, "uninstall", "--yes")
		must(t, err)
		must(t, noFinalizers(ctx))
		must(t, suite.UninstallHub(ctx))
		crdsStay(ctx, t)

		b, err := bindingOf(ctx, widget(ns, "w-1"))
		must(t, err)
		for _, obj := range []client.Object{widget(ns, "w-1"), b, &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: frankfurt}}} {
			// The API server removes the chart's admission policies with a delay, because it learns of their deletion by a
			// watch.
			eventually(t, prompt, func() error { return client.IgnoreNotFound(suite.Hub.Delete(ctx, obj)) })
			must(t, gone(ctx, obj))
		}
		sameCopies(t, uids, memberUIDs(ctx, t, ns))
		must(t, suite.InstallHub(ctx, kinds)) // the roles of this chart are compared with the audit log later
	})
}

// TestEveryRuleOfTheChartsIsNeeded compares the requests of the whole suite with the roles of both charts, so it must
// be the last test, and fails if it runs alone. If HANSE_REQUESTS is set, this process is one of several shards, which
// each run a part of the suite. The last shard compares the requests of all shards.
func TestEveryRuleOfTheChartsIsNeeded(t *testing.T) {
	shard := os.Getenv("HANSE_REQUESTS")
	switch run := flag.Lookup("test.run").Value.String(); {
	case run == "^"+t.Name()+"$":
		t.Fatal("this test needs the requests of the whole suite: run make test-e2e")
	case run != "" && shard == "":
		t.Skip("this test needs the requests of the whole suite")
	}
	ctx := t.Context()
	used, err := checkRefused()
	if err != nil {
		t.Error(err)
	}
	if shard != "" {
		must(t, used.write(shard))
		complete, err := used.addShards(filepath.Dir(shard))
		must(t, err)
		if !complete {
			t.Log("another shard has not ended: it compares the requests of all shards with the roles")
			return
		}
	}
	must(t, checkUnused(ctx, used))
}

func crdsStay(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, plural := range []string{
		"memberclusters", "placements", "clusterplacements", "overridepolicies", "clusteroverridepolicies", "resourcebindings", "clusterresourcebindings",
	} {
		var crd apiextensionsv1.CustomResourceDefinition
		must(t, suite.Hub.Get(ctx, types.NamespacedName{Name: plural + "." + hubv1.GroupVersion.Group}, &crd))
		if crd.DeletionTimestamp != nil {
			t.Errorf("CustomResourceDefinition %s is being deleted", crd.Name)
		}
	}
}

// noFinalizers returns nil if no object on the hub has a finalizer of Hanse.
func noFinalizers(ctx context.Context) error {
	var found []error
	for _, kind := range []string{"MemberCluster", "ResourceBinding", "ClusterResourceBinding"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(hubv1.GroupVersion.WithKind(kind + "List"))
		if err := suite.Hub.List(ctx, list); err != nil {
			return err
		}
		for _, o := range list.Items {
			if slices.Contains(o.Finalizers, hubv1.WithdrawFinalizer) {
				found = append(found, fmt.Errorf("%s %s/%s still has the finalizer %s", kind, o.Namespace, o.Name, hubv1.WithdrawFinalizer))
			}
		}
	}
	return errors.Join(found...)
}
