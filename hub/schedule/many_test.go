package schedule

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// TestManyObjectsAreDecidedAgainWithOneWriteForEachThatMoves creates objects of one placement, half of them on one
// cluster and half on another, and changes a label of a cluster. The API server counts the writes. The test is not
// parallel, because it must count no writes of other tests. The long form has 4,000 objects.
func TestManyObjectsAreDecidedAgainWithOneWriteForEachThatMoves(t *testing.T) {
	s := newScene(t, "many", "eu", "sg", "us")
	objects := 600
	if os.Getenv("HANSE_LONG") != "" {
		objects = 4_000
	}
	scene := s.id.Namespace
	p := s.place("web")
	p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"scene": scene}}}
	p.Spec.Spread = &hubv1.SpreadPolicy{
		NumberOfClusters: ptr.To[int32](1),
		Preferences:      []hubv1.ClusterPreference{{Weight: 10, Expression: "'new' in labels"}},
	}
	s.create(p)
	s.label("eu", map[string]any{"scene": scene})
	s.label("us", map[string]any{"scene": "another"})

	s.many(0, objects/2)
	s.manyDecided(0, objects/2, "eu", "us: label scene another is not in")
	s.label("sg", map[string]any{"scene": scene, "new": "yes"})
	s.many(objects/2, objects)
	s.manyDecided(objects/2, objects, "sg", "us: label scene another is not in")
	s.manyDecided(0, objects/2, "eu", "sg: numberOfClusters is 1, and other clusters come first")

	before, began := s.bindingWrites(), time.Now()
	s.label("us", map[string]any{"scene": "a-third"})
	s.manyDecided(0, objects/2, "eu", "us: label scene a-third is not in")
	s.manyDecided(objects/2, objects, "sg", "us: label scene a-third is not in")
	t.Logf("%d objects were decided on anew in %s", objects, time.Since(began).Round(time.Millisecond))
	if wrote := s.bindingWrites() - before; wrote != 0 {
		t.Errorf("a label that moves nothing made %d writes of bindings", wrote)
	}

	before, began = s.bindingWrites(), time.Now()
	s.label("sg", map[string]any{"scene": nil})
	held := s.holds()
	s.counting("half of the copies are held", objects/2, objects/2, 0)
	s.confirmRemoval("web", held.ID)
	s.manyDecided(0, objects, "eu", "sg: label scene is not set")
	t.Logf("%d objects were decided on anew, and half of them moved, in %s", objects, time.Since(began).Round(time.Millisecond))
	if wrote := s.bindingWrites() - before; wrote != objects {
		t.Errorf("%d writes of bindings, want two for each of the %d objects that moved: one says that it is held", wrote, objects/2)
	}
	var bindings hubv1.ResourceBindingList
	if err := hubClient.List(t.Context(), &bindings, client.InNamespace(scene)); err != nil {
		t.Fatal(err)
	}
	generations := map[int64]int{}
	for _, b := range bindings.Items {
		generations[b.Generation]++
	}
	if len(generations) != 2 || generations[1] != objects/2 || generations[3] != objects/2 {
		t.Errorf("bindings by generation: %v, want half of them at 1 and half at 3", generations)
	}
}

// label changes labels of a cluster, and returns when the scheduler's cache has the new labels.
func (s *scene) label(cluster string, labels map[string]any) {
	s.t.Helper()
	c := &hubv1.MemberCluster{}
	c.Name = s.cluster(cluster)
	var pairs []string
	for key, value := range labels {
		text := "null"
		if value != nil {
			text = fmt.Sprintf("%q", value)
		}
		pairs = append(pairs, fmt.Sprintf("%q:%s", key, text))
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%s}}}`, strings.Join(pairs, ","))
	if err := hubClient.Patch(s.t.Context(), c, client.RawPatch(types.MergePatchType, patch)); err != nil {
		s.t.Fatal(err)
	}
	s.eventually("the scheduler knows the label", func() error {
		var known hubv1.MemberCluster
		if err := scheduler.opts.Client.Get(s.t.Context(), client.ObjectKeyFromObject(c), &known); err != nil {
			return err
		}
		if known.ResourceVersion != c.ResourceVersion {
			return errors.New("it is an older one")
		}
		return nil
	})
}

func (s *scene) nth(i int) key {
	id := s.id
	id.Name = fmt.Sprintf("web-%05d", i)
	return id
}

// many creates the hub objects with the numbers from the first up to, but without, the second.
func (s *scene) many(from, to int) {
	for i := from; i < to; i++ {
		u := template(uuid.NewUUID())
		u.SetNamespace(s.id.Namespace)
		u.SetName(s.nth(i).Name)
		u.SetCreationTimestamp(metav1.Now())
		objects.set(s.nth(i), u)
	}
}

// manyDecided waits until the last decision on each of these objects chose only the given cluster, and rejected another
// one with the given message. Thousands of writes take a minute on a busy machine.
func (s *scene) manyDecided(from, to int, cluster, rejection string) {
	s.t.Helper()
	left := from // objects before left are not checked again
	s.within(5*time.Minute, fmt.Sprintf("objects %d to %d are on %s", from, to, cluster), func() error {
		for ; left < to; left++ {
			_, status, _, known := scheduler.Decision(s.nth(left).BindingKey())
			if !known || status == nil {
				return fmt.Errorf("nothing is decided on object %d", left)
			}
			if len(status.Reasons) != 1 || status.Reasons[0].Cluster != s.cluster(cluster) || !rejects(status, s.id.Namespace+"-"+rejection) {
				return fmt.Errorf("on object %d is decided %+v", left, status)
			}
		}
		return nil
	})
}

func rejects(d *hubv1.DecisionStatus, words string) bool {
	for _, r := range d.Rejected {
		for _, example := range r.Examples {
			if strings.HasPrefix(example, words) {
				return true
			}
		}
	}
	return false
}

// bindingWrites returns how often the API server has written ResourceBindings to etcd.
func (s *scene) bindingWrites() int {
	s.t.Helper()
	clients, err := kubernetes.NewForConfig(hubConfig)
	if err != nil {
		s.t.Fatal(err)
	}
	page, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	writes, err := fleet.EtcdWrites(string(page))
	if err != nil {
		s.t.Fatal(err)
	}
	return int(writes["resourcebindings."+hubv1.GroupVersion.Group])
}
