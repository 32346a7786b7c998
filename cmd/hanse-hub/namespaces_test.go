package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/hub"
)

func TestFederatedNamespacesAreReadFromFlags(t *testing.T) {
	var o hub.Options
	for _, text := range []string{"secrets=shop,blog", "apps/deployments= shop", "secrets=blog,news"} {
		if err := addNamespaces(&o, text); err != nil {
			t.Fatal(err)
		}
	}
	want := map[schema.GroupResource][]string{
		{Resource: "secrets"}: {"shop", "blog", "news"}, {Group: "apps", Resource: "deployments"}: {"shop"},
	}
	if diff := cmp.Diff(want, o.Objects.FederatedNamespaces); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "secrets", "secrets=", "=shop", "secrets=,"} {
		if err := addNamespaces(&o, text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
