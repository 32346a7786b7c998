package read_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/read"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, &envtest.Environment{}, &apiServer)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world has a namespace on a member with three ConfigMaps, one of which has a label.
type world struct {
	*testing.T
	*read.Reader
	admin kubernetes.Interface
	ns    string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	apiserver.Needed(t)
	client, err := informer.NewRESTClient(apiServer)
	must(t, err)
	w := &world{T: t, Reader: read.New(client), admin: kubernetes.NewForConfigOrDie(apiServer)}
	ns, err := w.admin.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}, metav1.CreateOptions{})
	must(t, err)
	w.ns = ns.Name
	for _, name := range []string{"a", "b", "c"} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"name": name}}
		if name == "b" {
			o.Labels = map[string]string{"app": "web"}
		}
		_, err := w.admin.CoreV1().ConfigMaps(w.ns).Create(t.Context(), o, metav1.CreateOptions{})
		must(t, err)
	}
	return w
}

func (w *world) configMaps() member.ListIntent {
	return member.ListIntent{
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", Namespace: w.ns,
		LabelSelector: "!x", Limit: 500,
	}
}

func names(l member.Listed) (out []string) {
	for _, r := range l.Rows {
		if r.Name != "kube-root-ca.crt" { // a controller may create this ConfigMap
			out = append(out, r.Name)
		}
	}
	return out
}

func TestATableHasTheColumnsOfTheMember(t *testing.T) {
	w := newWorld(t)
	found, err := w.List(t.Context(), w.configMaps())
	must(t, err)
	if diff := cmp.Diff([]member.Column{{Name: "Name"}, {Name: "Data"}, {Name: "Age"}}, found.Columns); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(found)); diff != "" || found.More {
		t.Error(diff, found)
	}
	if r := found.Rows[0]; r.Namespace != w.ns || r.ResourceVersion == "" || r.Cells[0] != "a" || r.Cells[1] != "1" {
		t.Errorf("got %+v", r)
	}
}

func TestAListIsNarrowed(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		narrow func(*member.ListIntent)
		want   []string
		more   bool
	}{
		"to a name":            {func(in *member.ListIntent) { in.Name = "c" }, []string{"c"}, false},
		"to a missing name":    {func(in *member.ListIntent) { in.Name = "d" }, nil, false},
		"to a selector":        {func(in *member.ListIntent) { in.LabelSelector = "app in (web)" }, []string{"b"}, false},
		"to a number":          {func(in *member.ListIntent) { in.Limit = 2 }, []string{"a", "b"}, true},
		"to no namespace":      {func(in *member.ListIntent) { in.Namespace, in.LabelSelector = "", "app=web" }, []string{"b"}, false},
		"to another namespace": {func(in *member.ListIntent) { in.Namespace = "none" }, nil, false},
		"by an odd name":       {func(in *member.ListIntent) { in.Name = "a,metadata.namespace=x" }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := w.configMaps()
			tc.narrow(&in)
			found, err := w.List(t.Context(), in)
			must(t, err)
			got := names(found)
			if in.Namespace == "" {
				got = got[:min(len(got), 1)] // objects of other tests have the label, too
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || found.More != tc.more {
				t.Errorf("more %v: %s", found.More, diff)
			}
		})
	}
}

func TestWholeObjectsHaveTheirKindAndNoManagedFields(t *testing.T) {
	w := newWorld(t)
	in := w.configMaps()
	in.Whole, in.Name = true, "a"
	found, err := w.List(t.Context(), in)
	must(t, err)
	if len(found.Objects) != 1 || found.Rows != nil {
		t.Fatalf("got %+v", found)
	}
	o := found.Objects[0]
	if o["kind"] != "ConfigMap" || o["apiVersion"] != "v1" || strings.Contains(fmt.Sprint(o), "managedFields") || !strings.Contains(fmt.Sprint(o), "name:a") {
		t.Errorf("got %v", o)
	}
}

func TestAKindThatIsNotServedIsNotFound(t *testing.T) {
	w := newWorld(t)
	in := w.configMaps()
	in.Kind, in.Resource = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "widgets"
	if _, err := w.List(t.Context(), in); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

func TestEventsAreThoseOfTheObjects(t *testing.T) {
	w := newWorld(t)
	start := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i, about := range []corev1.ObjectReference{
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "copy"},
		{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "other"},
		{APIVersion: "v1", Kind: "Pod", Name: "web-0", UID: "pod"},
		{APIVersion: "v1", Kind: "Pod", Name: "stranger", UID: "stranger"},
	} {
		about.Namespace = w.ns
		e := &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "e"}, InvolvedObject: about, Type: "Warning", Reason: "Failed", Count: 3,
			Message: "bad\x1b[31m\nnews of " + string(about.UID), LastTimestamp: metav1.NewTime(start.Add(-time.Duration(i) * time.Minute)),
		}
		_, err := w.admin.CoreV1().Events(w.ns).Create(t.Context(), e, metav1.CreateOptions{})
		must(t, err)
	}
	found, err := w.Events(t.Context(), w.ns, []member.Involved{
		{Group: "apps", Kind: "StatefulSet", Name: "web", UID: "copy"}, {Kind: "Pod", Name: "web-0"},
	})
	must(t, err)
	var got []string
	for _, e := range found.Items {
		got = append(got, fmt.Sprintf("%s.%s/%s %s %s x%d: %s", e.Kind, e.Group, e.Name, e.Type, e.Reason, e.Count, e.Message))
	}
	want := []string{ // control characters become blanks
		"StatefulSet.apps/web Warning Failed x3: bad [31m news of copy",
		"Pod./web-0 Warning Failed x3: bad [31m news of pod",
	}
	// The time of both events is their creation time, in seconds. Events of the same second may come in any order.
	if len(got) == 2 && strings.HasPrefix(got[0], "Pod") {
		got[0], got[1] = got[1], got[0]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
