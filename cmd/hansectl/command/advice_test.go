package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestARefusalNamesTheRoleToAskFor(t *testing.T) {
	refusal := func(verb, resource, group, where string) error {
		message := fmt.Sprintf(`User "jane" cannot %s resource %q in API group %q %s`, verb, resource, group, where)
		return fmt.Errorf("reading: %w", apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, "x", errors.New(message)))
	}
	const shop, everywhere = `in the namespace "shop"`, "at the cluster scope"
	tests := map[string]struct {
		err  error
		want string
	}{
		"a binding is read":                     {refusal("get", "resourcebindings", "hanse.dev", shop), "ask for the ClusterRole hanse-view in namespace shop"},
		"placements are listed":                 {refusal("list", "placements", "hanse.dev", shop), "ask for the ClusterRole hanse-view in namespace shop"},
		"a placement is changed":                {refusal("patch", "placements", "hanse.dev", shop), "ask for the ClusterRole hanse-edit in namespace shop"},
		"a policy is read, which view does not": {refusal("list", "overridepolicies", "hanse.dev", shop), "ask for the ClusterRole hanse-edit in namespace shop"},
		"a policy is changed":                   {refusal("patch", "overridepolicies", "hanse.dev", shop), "ask for the ClusterRole hanse-override in namespace shop"},
		"no namespace is named":                 {refusal("list", "placements", "hanse.dev", everywhere), "pass your namespace with -n, or ask for the ClusterRole hanse-view in all namespaces"},
		"an object is read":                     {refusal("get", "widgets", "test.hanse.dev", shop), "ask for the ClusterRole view in namespace shop, or for one with the right to get widgets.test.hanse.dev"},
		"a member is changed":                   {refusal("patch", "memberclusters", "hanse.dev", everywhere), "ask for a ClusterRole with the right to patch memberclusters.hanse.dev"},
		"whether a hub runs is looked at":       {refusal("get", "leases", "coordination.k8s.io", `in the namespace "hanse-system"`), "ask for the Role hanse-view in namespace hanse-system"},
		"the fleet is read":                     {refusal("list", "memberclusters", "hanse.dev", everywhere), ""},
		"the hub refuses, and says why":         {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("ask for the ClusterRole hanse-view")), ""},
		"something else is wrong":               {errors.New("boom"), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Advice(tc.err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFilesOfOtherNamespacesAreHintedAt(t *testing.T) {
	forbidden := fmt.Errorf("listing MemberClusters: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "memberclusters"}, "", errors.New("no right")))
	for name, tc := range map[string]struct {
		err        error
		named      string
		namespaces []string
		want       string // the text added to the error; empty if none is
	}{
		"all objects in one other namespace":  {err: forbidden, namespaces: []string{"shop", "shop", ""}, want: "pass -n shop to read this one alone: "},
		"objects in several other namespaces": {err: forbidden, namespaces: []string{"shop", "monitoring"}, want: "pass -n NAMESPACE with the files of one namespace, such as monitoring: "},
		"an object in the namespace as well":  {err: forbidden, namespaces: []string{"shop", "default"}},
		"no object in a namespace":            {err: forbidden, namespaces: []string{""}},
		"a namespace was named":               {err: forbidden, named: "shop", namespaces: []string{"shop"}},
		"another error":                       {err: errors.New("timed out"), namespaces: []string{"shop"}},
	} {
		files := &fleetFiles{sources: map[hubv1.ObjectIdentity]string{}}
		for i, namespace := range tc.namespaces {
			files.sources[hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: namespace, Name: fmt.Sprint(i)}] = "file.yaml"
		}
		got := files.hintNamespace(tc.err, tc.named, "default").Error()
		if tc.want == "" && got != tc.err.Error() || !strings.HasSuffix(got, tc.want+tc.err.Error()) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
