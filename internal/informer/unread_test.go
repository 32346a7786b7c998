package informer

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLookFindsWhatTellsAnObjectFromOthers(t *testing.T) {
	whole := glance{kind: "Widget", namespace: "team", name: "web", uid: "u-1", version: "42"}
	tests := map[string]struct {
		json string
		want glance
		ok   bool
	}{
		"an object as API servers write it": {
			json: `{"apiVersion":"a/v1","kind":"Widget","metadata":{"annotations":{"name":"no","x":"}\"{"},"generation":1,"managedFields":[{"f":{"f:metadata":{}}},[],"]"],"name":"web","namespace":"team","resourceVersion":"42","uid":"u-1"},"spec":{"name":"no"}}`,
			want: whole, ok: true,
		},
		"one with spaces, and the kind last": {
			json: "{ \"metadata\" : { \"uid\" : \"u-1\" , \"name\":\"web\",\n\"namespace\":\"team\", \"resourceVersion\":\"42\", \"finalizers\": null, \"ok\": true } ,\"spec\":[1,-2.5e3,{}], \"kind\":\"Widget\"}",
			want: whole, ok: true,
		},
		"a bookmark":                    {json: `{"kind":"Widget","metadata":{"resourceVersion":"42"}}`, want: glance{kind: "Widget", version: "42"}, ok: true},
		"escapes":                       {json: `{"kind":"Wid\u0067et","metadata":{"name":"w\u0065b"}}`, want: glance{kind: "Widget", name: "web"}, ok: true},
		"what follows is not looked at": {json: `{"kind":"Widget","metadata":{"name":"web"},"spec":`, want: glance{kind: "Widget", name: "web"}, ok: true},
		"empty metadata":                {json: `{"kind":"Widget","metadata":{}}`, want: glance{kind: "Widget"}, ok: true},
		"no metadata":                   {json: `{"kind":"Widget","spec":{}}`},
		"no kind":                       {json: `{"metadata":{"name":"web"}}`},
		"a name that is a number":       {json: `{"kind":"Widget","metadata":{"name":1}}`},
		"a list":                        {json: `[{"kind":"Widget","metadata":{}}]`},
		"nothing":                       {},
		"half a string":                 {json: `{"kind":"Wid`},
		"half an object":                {json: `{"metadata":{"name":"web"`},
		"a bracket too many":            {json: `{"metadata":]{"name":"web"},"kind":"Widget"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := look([]byte(tc.json))
			if ok != tc.ok || ok && got != tc.want {
				t.Errorf("got %+v, %t, want %+v, %t", got, ok, tc.want, tc.ok)
			}
		})
	}
}

// FuzzLook checks that look finds the same identity as a decoder that reads the whole object.
func FuzzLook(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"a/v1","kind":"Widget","metadata":{"name":"web","namespace":"team","resourceVersion":"42","uid":"u-1"}}`,
		`{"kind":"\ud800","metadata":{"name":"\"}","x":[[],{}]},"y":{"metadata":{}}}`, `{"metadata":{},"kind":"K"}`, `{`, `{"kind":"K","metadata":{"a":1,}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := look([]byte(text))
		var whole struct {
			Kind     string
			Metadata struct{ Namespace, Name, UID, ResourceVersion string }
		}
		decoder := json.NewDecoder(strings.NewReader(text))
		if decoder.Decode(&whole) != nil || !ok || hasTwice(text) {
			return
		}
		want := glance{whole.Kind, whole.Metadata.Namespace, whole.Metadata.Name, whole.Metadata.UID, whole.Metadata.ResourceVersion}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(glance{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	})
}

// hasTwice reports whether a name may occur more than once, or with other upper and lower case letters. Decoders give
// different results for such a text.
func hasTwice(text string) bool {
	lower := strings.ToLower(text)
	for _, name := range []string{"kind", "metadata", "namespace", `"name"`, "uid", "resourceversion"} {
		if strings.Count(lower, name) > 1 || strings.Count(lower, `\u`) > 0 || strings.Count(lower, name) != strings.Count(text, strings.Replace(name, "resourceversion", "resourceVersion", 1)) {
			return true
		}
	}
	return false
}

func TestAnAwaitedVersionIsTakenFromWhatTheWriteBrought(t *testing.T) {
	written := func(version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetName("web")
		u.SetResourceVersion(version)
		u.SetUID("u-1")
		return u
	}
	tests := map[string]struct {
		seen    string // the last resourceVersion of the watch
		version string // resourceVersion of the write
		event   glance
		want    bool
	}{
		"the event of the write":          {seen: "5", version: "7", event: glance{version: "7", uid: "u-1"}, want: true},
		"an earlier event":                {seen: "5", version: "7", event: glance{version: "6", uid: "u-1"}},
		"a later event":                   {seen: "5", version: "7", event: glance{version: "8", uid: "u-1"}},
		"another object of the name":      {seen: "5", version: "7", event: glance{version: "7", uid: "u-2"}},
		"a write that was seen before":    {seen: "7", version: "7", event: glance{version: "7", uid: "u-1"}},
		"nothing was listed yet":          {seen: "", version: "7", event: glance{version: "7", uid: "u-1"}},
		"a version that has no order":     {seen: "5", version: "x", event: glance{version: "x", uid: "u-1"}},
		"an answer that names no version": {seen: "5", version: "", event: glance{version: "", uid: "u-1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := &kind{}
			k.continueAt(tc.seen)
			k.willCome(written(tc.version))
			if got := k.awaited("web", &tc.event) != nil; got != tc.want {
				t.Errorf("taken: %t, want %t", got, tc.want)
			}
			if k.awaited("web", &tc.event) != nil {
				t.Error("it is awaited after an event")
			}
		})
	}
}
