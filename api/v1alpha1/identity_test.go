package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// anyIdentity generates identities, including ones that an API server would refuse. A name may have any characters
// except the slash.
func anyIdentity() *rapid.Generator[hubv1.ObjectIdentity] {
	name := rapid.OneOf(
		rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?`),
		rapid.StringMatching(`(system|kubeadm|cert-manager)(:[a-zA-Z0-9._-]{1,30}){1,7}`),
		rapid.StringMatching(`[-.:A-Z]{1,253}`),
		rapid.StringMatching(`[^/]{1,253}`),
	)
	kind := rapid.OneOf(rapid.StringMatching(`[A-Z][A-Za-z0-9]{0,62}`), rapid.StringMatching(`[A-Z][A-Za-z0-9-]{0,61}[a-z0-9]`))
	return rapid.Custom(func(t *rapid.T) hubv1.ObjectIdentity {
		return hubv1.ObjectIdentity{
			Group:     rapid.StringMatching(`|[a-z]{1,20}(\.[a-z]{1,20}){1,5}`).Draw(t, "group"),
			Kind:      kind.Draw(t, "kind"),
			Namespace: rapid.StringMatching(`|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`).Draw(t, "namespace"),
			Name:      name.Draw(t, "name"),
		}
	})
}

func TestEveryBindingNameIsADNSSubdomain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := anyIdentity().Draw(t, "identity")
		name := id.BindingName()
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			t.Fatalf("binding name %q of %q: %v", name, id.Name, faults)
		}
		if id.BindingKey() != (types.NamespacedName{Namespace: id.Namespace, Name: name}) {
			t.Fatalf("binding key %v", id.BindingKey())
		}
	})
}

func TestNoTwoObjectsShareABindingName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyIdentity().Draw(t, "one")
		b := a
		// The second identity differs in one part only, or in how the same characters are divided between the parts.
		switch rapid.IntRange(0, 4).Draw(t, "difference") {
		case 0:
			b.Group += "x"
		case 1:
			b.Kind += "X"
		case 2:
			b.Namespace += "x"
		case 3:
			b.Name += "x"
		case 4:
			b.Group, b.Kind = a.Group+a.Kind[:1], a.Kind[1:]
		}
		if a.BindingName() == b.BindingName() {
			t.Fatalf("%v and %v share %q", a, b, a.BindingName())
		}
	})
}

func TestBindingName(t *testing.T) {
	long := strings.Repeat("a", 253)
	tests := map[string]struct {
		id   hubv1.ObjectIdentity
		want string
	}{
		"a name that is a DNS label stays readable": {hubv1.ObjectIdentity{Group: "monitoring.coreos.com", Kind: "Prometheus", Namespace: "monitoring", Name: "web"}, "web-prometheus-"},
		"dots stay": {hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "things.example.com"}, "things.example.com-customresourcedefinition-"},
		"colons and upper case of RBAC names are lost":    {hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:controller:Job_Controller"}, "system-controller-job-controller-clusterrole-"},
		"a label that consists of other characters goes":  {hubv1.ObjectIdentity{Kind: "A", Name: ":a:.::.b"}, "a.b-a-"},
		"a name without a letter or digit becomes an x":   {hubv1.ObjectIdentity{Kind: "A", Name: ":::"}, "x-a-"},
		"a long name is cut":                              {hubv1.ObjectIdentity{Kind: "A", Name: long}, long[:200] + "-a-"},
		"a cut does not leave a dot at the end":           {hubv1.ObjectIdentity{Kind: "A", Name: long[:199] + "." + long[:50]}, long[:199] + "-a-"},
		"a cut does not leave half a character":           {hubv1.ObjectIdentity{Kind: "A", Name: long[:199] + "ä"}, long[:199] + "-a-"},
		"a long kind is cut":                              {hubv1.ObjectIdentity{Kind: "A" + long[:62], Name: "x"}, "x-" + long[:40] + "-"},
		"a long kind and a long name fit into one object": {hubv1.ObjectIdentity{Kind: "A" + long[:62], Name: long}, long[:200] + "-" + long[:40] + "-"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := tc.id.BindingName()
			if len(got) < 10 {
				t.Fatalf("got %q", got)
			}
			readable, digest := got[:len(got)-10], got[len(got)-10:]
			if readable != tc.want || strings.Trim(digest, "0123456789abcdef") != "" {
				t.Errorf("got %q, want %q and ten hex digits", got, tc.want)
			}
		})
	}
}

// If the name changed, every binding of every hub would be abandoned, and a second one would be created.
func TestBindingNamesNeverChange(t *testing.T) {
	id := hubv1.ObjectIdentity{Group: "monitoring.coreos.com", Kind: "Prometheus", Namespace: "monitoring", Name: "web"}
	if diff := cmp.Diff("web-prometheus-639ac010c7", id.BindingName()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOwnerRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := anyIdentity().Draw(t, "identity")
		uid := types.UID(rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`).Draw(t, "uid"))
		got, gotUID, err := hubv1.ParseOwner(id.Owner(uid))
		if err != nil || got != id || gotUID != uid {
			t.Fatalf("%q: got %v, %q, %v", id.Owner(uid), got, gotUID, err)
		}
	})
}

func TestParseOwner(t *testing.T) {
	tests := map[string]struct {
		value   string
		want    hubv1.ObjectIdentity
		wantErr string
	}{
		"a namespaced custom resource":        {value: "g.example.com/Thing/ns/name/uid", want: hubv1.ObjectIdentity{Group: "g.example.com", Kind: "Thing", Namespace: "ns", Name: "name"}},
		"a namespaced object of the core":     {value: "/ConfigMap/ns/name/uid", want: hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "ns", Name: "name"}},
		"a cluster-scoped object":             {value: "g/ClusterThing//system:x/uid", want: hubv1.ObjectIdentity{Group: "g", Kind: "ClusterThing", Name: "system:x"}},
		"nothing":                             {wantErr: `"": want <group>/<kind>/<namespace>/<name>/<uid>`},
		"slashes alone":                       {value: "////", wantErr: "want <group>"},
		"one part too few":                    {value: "g/Thing/name/uid", wantErr: "want <group>"},
		"one part too many":                   {value: "g/Thing/ns/name/uid/more", wantErr: "want <group>"},
		"no kind":                             {value: "g//ns/name/uid", wantErr: "want <group>"},
		"no name":                             {value: "g/Thing/ns//uid", wantErr: "want <group>"},
		"no uid":                              {value: "g/Thing/ns/name/", wantErr: "want <group>"},
		"the error names the annotation":      {value: "x", wantErr: `hanse.dev/owner "x"`},
		"the error quotes control characters": {value: "a\nb\x1b[31m", wantErr: `"a\nb\x1b[31m"`},
		"the error cuts what is long":         {value: strings.Repeat("x", 1<<18), wantErr: `"` + strings.Repeat("x", 80) + `"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, uid, err := hubv1.ParseOwner(tc.value)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got error %v, want %q", err, tc.wantErr)
				}
				if got != (hubv1.ObjectIdentity{}) || uid != "" {
					t.Errorf("an error and %v, %q", got, uid)
				}
				return
			}
			if err != nil || uid != "uid" {
				t.Fatalf("got uid %q, error %v", uid, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func FuzzParseOwner(f *testing.F) {
	for _, seed := range []string{"", "/////", "g/Thing/ns/name/uid", "/ConfigMap/ns/a%2Fb/uid", "g/K//system:x/\x00", "a/b/c/d/\xff", strings.Repeat("/", 1000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		id, uid, err := hubv1.ParseOwner(value)
		if err != nil {
			if len(err.Error()) > 1200 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if id.Kind == "" || id.Name == "" || uid == "" {
			t.Errorf("%q: %+v, uid %q", value, id, uid)
		}
		if id.Owner(uid) != value {
			t.Errorf("%q comes back as %q", value, id.Owner(uid))
		}
	})
}

func TestIdentityString(t *testing.T) {
	tests := map[string]struct {
		id   hubv1.ObjectIdentity
		want string
	}{
		"a namespaced custom resource": {hubv1.ObjectIdentity{Group: "monitoring.coreos.com", Kind: "Prometheus", Namespace: "monitoring", Name: "web"}, "Prometheus.monitoring.coreos.com monitoring/web"},
		"a cluster-scoped object":      {hubv1.ObjectIdentity{Kind: "Namespace", Name: "web"}, "Namespace web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.id.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
