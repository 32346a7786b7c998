package manifest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

const home = hubv1.SystemNamespace

// texts generates labels or annotations. It returns nil instead of an empty map.
func texts(t *rapid.T, name string) map[string]string {
	word := rapid.StringMatching(`[a-z]{1,8}`)
	m := rapid.MapOfN(word, rapid.String(), 0, 4).Draw(t, name)
	if len(m) == 0 {
		return nil
	}
	return m
}

// drawStored generates an object as Read returns it, in any state.
func drawStored(t *rapid.T) Stored {
	word := rapid.StringMatching(`[a-z][a-z0-9-]{0,20}`)
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(rapid.SampledFrom([]string{"v1", "apps/v1", "example.com/v1beta1"}).Draw(t, "apiVersion"))
	u.SetKind(rapid.StringMatching(`[A-Z][a-zA-Z]{0,10}`).Draw(t, "kind"))
	u.SetName(word.Draw(t, "name"))
	s := Stored{
		Bundle:     hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: hubv1.ClusterBundleKind, Name: word.Draw(t, "bundle")}, Labels: texts(t, "labels of the bundle")},
		UID:        types.UID(word.Draw(t, "uid")),
		Generation: rapid.Int64Min(1).Draw(t, "generation"),
		Manifest:   u,
	}
	if rapid.Bool().Draw(t, "in a namespace") {
		u.SetNamespace(word.Draw(t, "namespace"))
		s.Bundle.Namespace = u.GetNamespace()
	}
	u.SetLabels(texts(t, "labels"))
	u.SetAnnotations(texts(t, "annotations"))
	leaf := rapid.OneOf(
		rapid.Map(rapid.Int64(), func(i int64) any { return i }),
		rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.String(), func(s string) any { return s }),
		rapid.Map(rapid.SliceOfN(rapid.Map(rapid.String(), func(s string) any { return s }), 0, 3), func(l []any) any { return l }),
		rapid.Just[any](nil),
	)
	u.Object["spec"] = rapid.MapOfN(word, leaf, 0, 5).Draw(t, "spec")
	if rapid.Bool().Draw(t, "removed") {
		s.Removed = time.Unix(rapid.Int64Range(1, 1<<32).Draw(t, "removal time"), 0).UTC()
	}
	return s
}

func secretOf(t interface{ Fatal(...any) }, s Stored) *corev1.Secret {
	secret, err := s.Secret(home)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestASecretHasAllOfAStoredObject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawStored(t)
		secret := secretOf(t, s)
		if secret.Namespace != home || secret.Type != hubv1.ManifestSecretType || secret.Labels[hubv1.ManifestLabel] == "" {
			t.Fatalf("the Secret is %s of type %s with labels %v", secret.Namespace, secret.Type, secret.Labels)
		}
		got, err := ReadStored(secret)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got); diff != "" {
			t.Fatalf("-stored +read:\n%s", diff)
		}
	})
}

func TestATemplateHasItsManifest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawStored(t)
		secret := secretOf(t, s)
		secret.ResourceVersion, secret.CreationTimestamp = "7", metav1.Unix(5, 0)
		want := s.Manifest.DeepCopy()
		template := s.Template(secret)
		if template.GetUID() != s.UID || template.GetGeneration() != s.Generation || template.GetResourceVersion() != "7" ||
			!template.GetCreationTimestamp().Time.Equal(time.Unix(5, 0)) || (template.GetDeletionTimestamp() != nil) == s.Removed.IsZero() {
			t.Fatalf("the metadata of the template is %v", template.Object["metadata"])
		}
		if diff := cmp.Diff(&s.Bundle, hubv1.BundleOf(template)); diff != "" {
			t.Fatalf("bundle of the template (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want.Object, Of(template).Object); diff != "" {
			t.Fatalf("-manifest +manifest of the template:\n%s", diff)
		}
	})
}

// thing returns an object of the Bundle shop/web.
func thing() Stored {
	return Stored{
		Bundle: hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: "Bundle", Namespace: "shop", Name: "web"}}, UID: "u", Generation: 3,
		Manifest: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "shop", "name": "web"}, "spec": map[string]any{"size": int64(3)},
		}},
	}
}

func TestSecretsThatAreNotStoredObjectsAreRefused(t *testing.T) {
	t.Parallel()
	bomb := compressed(t, bytes.Repeat([]byte(" "), maxStoredBytes+1))
	if len(bomb) > 64<<10 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	tests := map[string]struct {
		change func(*corev1.Secret)
		want   string
	}{
		"without the bundle":                     {func(s *corev1.Secret) { delete(s.Annotations, hubv1.BundleAnnotation) }, "it is not a stored manifest"},
		"with a broken bundle":                   {func(s *corev1.Secret) { s.Annotations[hubv1.BundleAnnotation] = "web" }, "it is not a stored manifest"},
		"of another type":                        {func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, "it is not a stored manifest"},
		"without the generation":                 {func(s *corev1.Secret) { delete(s.Annotations, generationAnnotation) }, "annotation hanse.dev/generation: "},
		"with a generation in words":             {func(s *corev1.Secret) { s.Annotations[generationAnnotation] = "three" }, `annotation hanse.dev/generation: strconv.ParseInt: parsing "three"`},
		"with a removal that is no time":         {func(s *corev1.Secret) { s.Annotations[removedAnnotation] = "true" }, `annotation hanse.dev/removed: parsing time "true"`},
		"with an empty removal":                  {func(s *corev1.Secret) { s.Annotations[removedAnnotation] = "" }, "annotation hanse.dev/removed: "},
		"without the manifest":                   {func(s *corev1.Secret) { delete(s.Data, manifestKey) }, "EOF"},
		"with a manifest that is not compressed": {func(s *corev1.Secret) { s.Data[manifestKey] = []byte(`{"kind":"Thing"}`) }, "gzip: invalid header"},
		"with a manifest that is cut off":        {func(s *corev1.Secret) { s.Data[manifestKey] = s.Data[manifestKey][:len(s.Data[manifestKey])-5] }, "EOF"},
		"with a manifest that is no JSON":        {func(s *corev1.Secret) { s.Data[manifestKey] = compressed(t, []byte("kind: Thing")) }, "invalid character"},
		"with a manifest without a kind":         {func(s *corev1.Secret) { s.Data[manifestKey] = compressed(t, []byte(`{"apiVersion":"v1"}`)) }, "Object 'Kind' is missing"},
		"under the name of another object": {
			func(s *corev1.Secret) {
				s.Name = hubv1.ObjectIdentity{Kind: "Thing", Namespace: "shop", Name: "web"}.ManifestName()
			},
			"it has the manifest of ",
		},
		"with a manifest that is larger than any object once it is decompressed": {func(s *corev1.Secret) { s.Data[manifestKey] = bomb }, "the text has more than 16777216 bytes when it is decompressed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := secretOf(t, thing())
			tc.change(secret)
			got, err := ReadStored(secret)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "reading Secret hanse-system/manifest-") {
				t.Errorf("got error %v, want %q", err, tc.want)
			}
			if got.Manifest != nil {
				t.Errorf("a refused Secret gives %v", got)
			}
		})
	}
}

func TestStoredName(t *testing.T) {
	t.Parallel()
	ids := []hubv1.ObjectIdentity{
		{Group: "example.com", Kind: "Thing", Namespace: "shop", Name: "web"},
		{Group: "", Kind: "Thing", Namespace: "shop", Name: "web"},
		{Group: "example.com", Kind: "Thing", Namespace: "", Name: "shop"},
		{Group: "example.com", Kind: "Thing", Namespace: "shop", Name: ""},
		{Group: "example.com", Kind: "Thing", Namespace: "sho", Name: "pweb"},
	}
	names := map[string]bool{}
	for _, id := range ids {
		names[id.ManifestName()] = true
	}
	if len(names) != len(ids) {
		t.Errorf("%d objects have %d names: %v", len(ids), len(names), names)
	}
	// If the name changed, each stored object of a running hub would be orphaned.
	if got, want := ids[0].ManifestName(), "manifest-050612ac04eaf8c95de6"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAPatchTurnsAnEarlierSecretIntoTheLater(t *testing.T) {
	t.Parallel()
	removed := thing()
	removed.Removed = time.Unix(5, 0).UTC()
	other := thing()
	other.Bundle.Labels, other.UID, other.Generation = map[string]string{"team": "a"}, "v", 4
	other.Manifest.Object["spec"] = map[string]any{"size": int64(4)}
	tests := map[string]struct{ before, after Stored }{
		"an object that is removed":                     {thing(), removed},
		"a removed object that is in the bundle again":  {removed, thing()},
		"another manifest, uid and labels of a bundle":  {thing(), other},
		"another manifest of an object that is removed": {removed, other},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patch, err := tc.after.Patch("7")
			if err != nil {
				t.Fatal(err)
			}
			secret := secretOf(t, tc.before)
			merge(t, secret, patch)
			if secret.ResourceVersion != "7" {
				t.Errorf("the patch is for resourceVersion %q", secret.ResourceVersion)
			}
			got, err := ReadStored(secret)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.after, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// merge applies a merge patch.
func merge(t *testing.T, secret *corev1.Secret, patch []byte) {
	t.Helper()
	original, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch(original, patch)
	if err != nil {
		t.Fatal(err)
	}
	*secret = corev1.Secret{}
	if err := json.Unmarshal(merged, secret); err != nil {
		t.Fatal(err)
	}
}

func compressed(t *testing.T, raw []byte) []byte {
	t.Helper()
	out, err := canonical.Compress(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
