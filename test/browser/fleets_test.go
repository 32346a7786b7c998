package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view/wire"
)

// smallFleet returns a hub with three clusters, an object that is degraded on one of them, and a rollout that waits.
func smallFleet() *fakeHub {
	f := &fakeHub{}
	f.add(namespaceNamed("shop"))
	var rows []hubv1.ClusterRow
	for i, region := range []string{"eu-central-1", "cn-shanghai", "us-east-1"} {
		name := fmt.Sprintf("c%d-0", i)
		f.add(anyCluster(name, region, metav1.ConditionTrue, "Connected", "", 0))
		row := healthyRow(name)
		row.Revision = 6
		rows = append(rows, row)
	}
	rows[0].Health, rows[0].Reason, rows[0].Message = hubv1.HealthDegraded, "Degraded", "the volume is attached to another node"
	rows[0].Revision = 7
	f.rollout(f.anyObject("settings", nil, rows...))
	return f
}

// hungFleet returns a hub whose members never answer.
func hungFleet() *fakeHub {
	f := smallFleet()
	f.views = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return f
}

// tenantFleet returns a hub whose user may read only the namespace shop. Another namespace has objects, too.
func tenantFleet() *fakeHub {
	f := smallFleet()
	f.tenant = "shop"
	f.views = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/"+wire.Facts) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		var answer wire.FactsAnswer
		for _, o := range f.objects {
			if m, is := o.(*hubv1.MemberCluster); is {
				answer.MemberClusters = append(answer.MemberClusters, *m)
			}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	return f
}

// cached is a cache of bindings.
type cached []hubv1.ResourceBinding

// Get implements client.Reader.
func (c cached) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for i := range c {
		if b, is := into.(*hubv1.ResourceBinding); is && client.ObjectKeyFromObject(&c[i]) == key {
			c[i].DeepCopyInto(b)
			return nil
		}
	}
	return fmt.Errorf("no binding %s", key)
}

// List implements client.Reader.
func (c cached) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, is := into.(*hubv1.ResourceBindingList); is {
		list.Items = c
	}
	return nil
}

// manyObjects returns a hub with 10,000 objects, of which 1,000 are degraded. All of them follow one rollout.
func manyObjects() *fakeHub {
	f := smallFleet()
	var all cached
	for _, o := range f.objects {
		if b, is := o.(*hubv1.ResourceBinding); is {
			all = append(all, *b)
		}
	}
	first := all[0]
	for i := range 9999 {
		b := first.DeepCopy()
		b.Name, b.Spec.ObjectRef.Name = fmt.Sprintf("settings-%05d", i), fmt.Sprintf("settings-%05d", i)
		b.Spec.Rollout.Since = metav1.NewTime(time.Now().Add(-time.Duration(i) * time.Second))
		if i%10 > 0 {
			b.Status.Clusters[0].Health, b.Status.Conditions = hubv1.HealthHealthy, nil
		}
		if i%5 > 0 {
			b.Spec.Rollout.Phase = hubv1.RolloutComplete
		}
		all = append(all, *b)
	}
	f.bindings = all
	return f
}
