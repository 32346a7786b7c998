// Package upgrade tests what must stay compatible between two releases. Replicas of both run at the same time during a
// rolling update, and each reads what the other has stored.
package upgrade

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/membership/shard"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/replicas"
)

const widget = `
apiVersion: example.com/v1
kind: Widget
metadata:
  name: web
  namespace: shop
  labels: {app: web}
spec: {replicas: 3, text: "a <b> & c", other: 1.5}
`

// TestHashesAreThoseOfEarlierReleases compares names and hashes with the values of earlier releases. The values are
// stored in objects, or two replicas compute them for the same object. Each case says what a different value would
// cause. package member/content has the same test for the hashes in rows.
func TestHashesAreThoseOfEarlierReleases(t *testing.T) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(widget), &object.Object); err != nil {
		t.Fatal(err)
	}
	secret := object.DeepCopy()
	secret.SetAPIVersion("v1")
	secret.SetKind("Secret")
	key := canonical.Key("0123456789abcdef0123456789abcdef")
	terms, err := replicas.TermsHash(
		hubv1.DividePolicy{By: hubv1.DivideByCapacity}, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")})
	if err != nil {
		t.Fatal(err)
	}
	template, rules := decide.Inputs{
		Template: object,
		Rules: decide.Rules{MemberOwnedFields: []string{"/spec/replicas"}, Policies: []decide.Policy{{
			Namespace: "shop", Name: "by-region",
			Rules: []hubv1.OverrideRule{{
				Name: "eu", Priority: 5, Clusters: &hubv1.RuleClusters{Names: []string{"eu-fra-1"}},
				Images: []hubv1.ImageOverride{{Tag: "v2"}}, Env: []hubv1.EnvOverride{{Set: []hubv1.EnvVariable{{EnvVar: corev1.EnvVar{Name: "REGION", Value: "eu"}}}}},
			}},
		}}},
	}.Digests(key, &hubv1.Division{Path: "/spec/replicas"})

	owners := func(members ...string) string {
		var out []string
		for _, m := range members {
			out = append(out, shard.Owner(m, []string{"hub-0", "hub-1", "hub-2"}))
		}
		return strings.Join(out, ", ")
	}

	for _, tc := range []struct{ name, got, want string }{
		{"the name of a binding: another name leaves the binding and its copies behind",
			hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:Web"}.BindingName(), "system-web-clusterrole-a1e43f5c41"},
		{"the replica of a member: two answers leave the member to no replica", owners("eu-fra-1", "cn-sha-1", "us-east-1", "ap-se-1"), "hub-2, hub-0, hub-2, hub-0"},
		{"the digest of a manifest: another digest applies every copy once", overrides.Digest(key, object, "salt"), "34d432746f1bd6d428369d6793e5b93f"},
		{"the digest of a Secret", overrides.Digest(key, secret), "e56c7612dd0438bc9aeda512b869bc95"},
		{"the hash of the terms of a division: another hash divides again", terms, "04101d13d76d0df2"},
		{"the digest of a template: another digest begins a rollout of every object", template, "17dbd26c1605c03b74c0429c81d841e8"},
		{"the digest of rules: another digest begins a rollout of every object", rules, "bc35d23f43c3e14dc0e793b08e7a9de5"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, tc.got, tc.want)
		}
	}
}
