package hub

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// unreadable fails every read.
type unreadable struct{ client.Reader }

// Get implements client.Reader.
func (unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no")
}

func TestAnObjectIsClaimedByABindingThatNamesTheCluster(t *testing.T) {
	id := hubv1.ObjectIdentity{Group: "shop.example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	binding := func(clusters ...string) client.Reader {
		key := id.BindingKey()
		b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		for _, name := range clusters {
			b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: name})
		}
		scheme := runtime.NewScheme()
		if err := hubv1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).Build()
	}
	tests := map[string]struct {
		bindings client.Reader
		object   string
		want     bool
	}{
		"a binding names the cluster":           {binding("us", "eu"), "web", true},
		"the binding names other clusters":      {binding("us"), "web", false},
		"only another object has a binding":     {binding("eu"), "other", false},
		"the binding cannot be read at present": {unreadable{}, "web", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			asked := id
			asked.Name = tc.object
			if got := claimedOn(tc.bindings, "eu")(asked); got != tc.want {
				t.Errorf("claimed is %v, want %v", got, tc.want)
			}
		})
	}
}
