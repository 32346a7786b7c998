package console

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// fullCache is a cache with one binding in every namespace, and one cluster-scoped binding. It records the namespaces
// from which bindings are read. The empty namespace stands for the cluster-scoped bindings.
type fullCache struct {
	client.Reader

	mu   sync.Mutex
	read []string
}

func (f *fullCache) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	of := client.ListOptions{}
	of.ApplyOptions(options)
	spec := hubv1.BindingSpec{ObjectRef: hubv1.ObjectReference{APIVersion: "v1", Kind: "Gadget", Name: "cached-gadget"}}
	switch list := list.(type) {
	case *hubv1.ResourceBindingList:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.read = append(f.read, "namespace "+of.Namespace)
		list.Items = []hubv1.ResourceBinding{{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: "cached-binding"}, Spec: spec}}
	case *hubv1.ClusterResourceBindingList:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.read = append(f.read, "cluster")
		list.Items = []hubv1.ClusterResourceBinding{{ObjectMeta: metav1.ObjectMeta{Name: "cached-binding"}, Spec: spec}}
	}
	return nil
}

// reads returns the namespaces that were read since the last call of reads.
func (f *fullCache) reads() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.read
	f.read = nil
	slices.Sort(out)
	return slices.Compact(out)
}

func TestAPageShowsBindingsOfTheCacheOnlyToAUserWhoMayListThem(t *testing.T) {
	cached := &fullCache{}
	w := newWorld(t, func(o *Options, _ string) { o.Bindings = cached })
	stranger, owner, admin := w.signedIn(w.token(nil, nil)), w.signedIn(w.token(reads(), nil)), w.signedIn(w.token(nil, reads()))
	const object = "kind=Gadget&name=cached-gadget"
	paths := []string{"/?", "/objects?", "/operators?", "/rollouts?", "/rollouts/placement?name=none&", "/object?" + object + "&", "/clusters/none?", "/whatif?"}
	for _, path := range paths {
		for user, b := range map[string]*browser{"a user without a right": stranger, "a user of one namespace": owner} {
			for _, of := range []string{"", "namespace=default"} {
				if r := b.get(path + of); strings.Contains(r.text, "cached") && !strings.Contains(path, "cached") {
					t.Errorf("%s sees a binding on %s%s:\n%s", user, path, of, r.text)
				}
				if read := cached.reads(); len(read) > 0 {
					t.Errorf("%s%s reads %v for %s", path, of, read, user)
				}
			}
		}
	}
	for of, want := range map[string][]string{"namespace=" + w.ns: {"namespace " + w.ns}, "": {"cluster", "namespace "}} {
		b := owner
		if of == "" {
			b = admin
		}
		r := b.get("/objects?" + of)
		if read := cached.reads(); !slices.Equal(read, want) || !strings.Contains(r.text, "cached-gadget") {
			t.Errorf("/objects?%s reads %v, want %v, and shows the object:\n%s", of, read, want, r.text)
		}
	}
}

func TestPagesAreMadeFromTheCacheOfAHub(t *testing.T) {
	w := newWorld(t)
	w.place("kept", healthyOn(w.cluster("one", "eu", metav1.ConditionTrue)))
	cached, err := cache.New(hubConfig, cache.Options{Scheme: w.hub.Scheme(), Mapper: w.hub.RESTMapper()})
	must(t, err)
	go func() { _ = cached.Start(t.Context()) }()
	if !cached.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not start")
	}
	w.console.opts.Bindings = cached // from now on, pages read the cache
	var before, after hubv1.ResourceBindingList
	must(t, cached.List(t.Context(), &before))
	b := w.signedIn(w.token(nil, reads()))
	b.get("/objects?namespace="+w.ns).shows(t, "kept")
	b.get("/").shows(t, w.ns+"-one")
	b.get("/clusters/"+w.ns+"-one?namespace="+w.ns).shows(t, "Healthy")
	for _, path := range []string{"/operators", "/rollouts", "/whatif?lost=cluster/" + w.ns + "-one", objectQuery(w, "kept")} {
		b.get(path)
	}
	must(t, cached.List(t.Context(), &after))
	if diff := cmp.Diff(before.Items, after.Items); diff != "" {
		t.Errorf("pages changed the cache (-before +after):\n%s", diff)
	}
}

func TestAUserWhoMayNotListObjectsWithoutANamespaceSeesTheOthers(t *testing.T) {
	cached := &fullCache{}
	w := newWorld(t, func(o *Options, _ string) { o.Bindings = cached })
	rules := []rbacv1.PolicyRule{{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"resourcebindings"}, Verbs: []string{"list"}}}
	r := w.signedIn(w.token(nil, rules)).get("/objects")
	if read := cached.reads(); !slices.Equal(read, []string{"namespace "}) || !strings.Contains(r.text, "You do not see objects without a namespace") {
		t.Errorf("the page reads %v, and shows\n%s", read, r.text)
	}
}
