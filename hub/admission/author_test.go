package admission

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// written returns an object with annotations, given as pairs of name and value, and with this spec.
func written(spec string, annotations ...string) string {
	all := map[string]string{}
	for i := 0; i+1 < len(annotations); i += 2 {
		all[annotations[i]] = annotations[i+1]
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "a", "annotations": all}, "spec": json.RawMessage(spec)})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func authoredOf(t *testing.T, object string) *authored {
	t.Helper()
	var out authored
	if err := utiljson.Unmarshal([]byte(object), &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestTheAuthorIsTheUserOfTheLastChangeOfTheSpecOrOfARollout(t *testing.T) {
	const by = hubv1.ChangedByAnnotation
	long := strings.Repeat("a", maxAuthorLength+1)
	type testCase struct {
		before, after, user, want string
	}
	cases := map[string]testCase{
		"a new object":                            {"", written(`{"a":1}`), "bob", "bob"},
		"a new object that names another user":    {"", written(`{"a":1}`, by, "alice"), "bob", "bob"},
		"a new object of a user with a long name": {"", written(`{"a":1}`, by, "alice"), long, ""},
		"no change":                                 {written(`{"a":1}`, by, "alice"), written(`{"a":1}`, by, "alice"), "bob", "alice"},
		"fields in another order":                   {written(`{"a":1,"b":2}`, by, "alice"), written(`{"b":2,"a":1}`, by, "alice"), "bob", "alice"},
		"the spec":                                  {written(`{"a":1}`, by, "alice"), written(`{"a":2}`, by, "alice"), "bob", "bob"},
		"the last digit of a large number":          {written(`{"a":9007199254740993}`, by, "alice"), written(`{"a":9007199254740992}`, by, "alice"), "bob", "bob"},
		"a field that was unset":                    {written(`{"a":1}`, by, "alice"), written(`{"a":1,"b":null}`, by, "alice"), "bob", "bob"},
		"the spec, by the same user":                {written(`{"a":1}`, by, "alice"), written(`{"a":2}`, by, "alice"), "alice", "alice"},
		"the spec, and another name":                {written(`{"a":1}`, by, "alice"), written(`{"a":2}`, by, "carol"), "bob", "bob"},
		"the spec, and no name":                     {written(`{"a":1}`, by, "alice"), written(`{"a":2}`), "bob", "bob"},
		"the spec, by a user with a long name":      {written(`{"a":1}`, by, "alice"), written(`{"a":2}`, by, "alice"), long, ""},
		"another annotation":                        {written(`{"a":1}`, by, "alice"), written(`{"a":1}`, by, "alice", "hanse.dev/confirm-removal", "x"), "bob", "alice"},
		"another name":                              {written(`{"a":1}`, by, "alice"), written(`{"a":1}`, by, "bob"), "bob", "alice"},
		"the name taken away":                       {written(`{"a":1}`, by, "alice"), written(`{"a":1}`), "bob", "alice"},
		"a name where there was none":               {written(`{"a":1}`), written(`{"a":1}`, by, "bob"), "bob", ""},
		"an object that is older than the record":   {written(`{"a":1}`), written(`{"a":2}`), "bob", "bob"},
		"an object with no annotations, unchanged":  {`{"metadata":{},"spec":{}}`, `{"metadata":{},"spec":{}}`, "bob", ""},
		"an object with no annotations and no spec": {"", `{"metadata":{}}`, "bob", "bob"},
	}
	for _, name := range rolloutAnnotations {
		cases["set "+name] = testCase{written(`{}`, by, "alice"), written(`{}`, by, "alice", name, ""), "bob", "bob"}
		cases["changed "+name] = testCase{written(`{}`, by, "alice", name, "x"), written(`{}`, by, "alice", name, "y"), "bob", "bob"}
		cases["removed "+name] = testCase{written(`{}`, by, "alice", name, "x"), written(`{}`, by, "alice"), "bob", "bob"}
		cases["kept "+name] = testCase{written(`{}`, by, "alice", name, "x"), written(`{}`, by, "alice", name, "x"), "bob", "alice"}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var before *authored
			if c.before != "" {
				before = authoredOf(t, c.before)
			}
			if got := changedBy(before, authoredOf(t, c.after), c.user); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

func TestThePatchOfTheAuthorChangesNothingElse(t *testing.T) {
	const by = hubv1.ChangedByAnnotation
	for name, c := range map[string]struct{ before, after, patch string }{
		"a new object without annotations": {"", `{"metadata":{"name":"a"},"spec":{}}`, `[{"op":"add","path":"/metadata/annotations","value":{"hanse.dev/changed-by":"bob"}}]`},
		"a new object with annotations":    {"", written(`{}`, "a", "b"), `[{"op":"add","path":"/metadata/annotations/hanse.dev~1changed-by","value":"bob"}]`},
		"an object with no annotations":    {"", `{"metadata":{"annotations":null}}`, `[{"op":"add","path":"/metadata/annotations","value":{"hanse.dev/changed-by":"bob"}}]`},
		"a change":                         {written(`{"a":1}`, by, "alice"), written(`{"a":2}`, by, "alice"), `[{"op":"add","path":"/metadata/annotations/hanse.dev~1changed-by","value":"bob"}]`},
		"a change by the same user":        {written(`{"a":1}`, by, "bob"), written(`{"a":2}`, by, "bob"), ``},
		"no change":                        {written(`{"a":1}`, by, "alice"), written(`{"a":1}`, by, "alice"), ``},
		"no change, and no author":         {written(`{"a":1}`), written(`{"a":1}`), ``},
		"a name where there was none":      {written(`{"a":1}`), written(`{"a":1}`, by, "bob"), `[{"op":"remove","path":"/metadata/annotations/hanse.dev~1changed-by"}]`},
		"an empty name":                    {written(`{"a":1}`), written(`{"a":1}`, by, ""), `[{"op":"remove","path":"/metadata/annotations/hanse.dev~1changed-by"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got := Recorder{}.Handle(t.Context(), request(c.before, c.after, "bob"))
			if !got.Allowed {
				t.Fatalf("refused: %v", got.Result)
			}
			if diff := cmp.Diff(c.patch, string(got.Patch)); diff != "" {
				t.Errorf("the patch (-want +got):\n%s", diff)
			}
			if len(got.Patch) > 0 && (got.PatchType == nil || *got.PatchType != admissionv1.PatchTypeJSONPatch) {
				t.Errorf("the patch has the type %v", got.PatchType)
			}
		})
	}
}

func TestAnAuthorIsNotRecordedForWhatCannotBeRead(t *testing.T) {
	for name, req := range map[string]admission.Request{
		"an object":            request("", `{"spec"`, "bob"),
		"the object before":    request(`{"metadata":[]}`, written(`{}`), "bob"),
		"no object before":     {AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: runtime.RawExtension{Raw: []byte(written(`{}`))}}},
		"nothing to be stored": {AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Delete}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Recorder{}).Handle(t.Context(), req); got.Allowed || got.Result.Code != http.StatusBadRequest {
				t.Errorf("answered %+v", got)
			}
		})
	}
}

// request returns the review of a creation, or of an update if before is not empty.
func request(before, after, user string) admission.Request {
	r := admissionv1.AdmissionRequest{Operation: admissionv1.Create, UserInfo: authenticationv1.UserInfo{Username: user}, Object: runtime.RawExtension{Raw: []byte(after)}}
	if before != "" {
		r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(before)
	}
	return admission.Request{AdmissionRequest: r}
}
