package rollup

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

// oddText draws texts that a hostile member may send in any string field.
var oddText = rapid.SampledFrom([]string{
	"", "a", "Reason", "5f0c2a1e-8a55-4a51-9d4d-0a4ad6b7d1a0", strings.Repeat("x", 65), strings.Repeat("u", 129), strings.Repeat("x", 2<<20), strings.Repeat("é", 100),
	strings.Repeat("😀", 300), strings.Repeat("\x00", 1<<20), strings.Repeat("\xff", 1<<16), strings.Repeat(`"\`, 1<<18), "a\u2028b\nc\r\td", "</script>\u202e", "{{.}}", "\ufffd",
	strings.Repeat("é", 31) + "x\xc3", strings.Repeat("日", 22),
})

var verdicts = rapid.SampledFrom([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown})

func oddStatus(t *rapid.T) []byte {
	status := map[string]any{}
	for i := range rapid.IntRange(0, 20).Draw(t, "fields") {
		text := strings.ToValidUTF8(oddText.Draw(t, "name"), "?")
		status[fmt.Sprintf("%.300s%d", text, i)] = map[string]any{"a": int64(i), "b": strings.ToValidUTF8(oddText.Draw(t, "text"), "?"), "c": []any{map[string]any{"name": text}}}
	}
	status["conditions"] = []any{map[string]any{"type": strings.ToValidUTF8(oddText.Draw(t, "type"), "?"), "status": "True", "reason": strings.ToValidUTF8(oddText.Draw(t, "reason"), "?")}}
	return health.Project(schema.GroupKind{}, status)
}

func oddFact(t *rapid.T) Fact {
	text := func(what string) string { return oddText.Draw(t, what) }
	seen := &member.Observation{
		Namespace: text("namespace"), Name: text("name"),
		CopyState: member.CopyState{UID: types.UID(text("uid")), ResourceVersion: text("version"), Generation: rapid.Int64().Draw(t, "generation"), Digest: text("digest"), Hash: text("hash")},
		OwnerUID:  "hub-uid", Assessment: member.Assessment{Health: hubv1.HealthDegraded, HealthReason: text("healthReason"), HealthMessage: text("healthMessage")},
		Observed: oddStatus(t), ObservedGeneration: rapid.Int64().Draw(t, "observedGeneration"),
	}
	out := &member.Outcome{
		Applied: verdicts.Draw(t, "applied"), Reason: text("reason"), Message: text("message"),
		CopyState: member.CopyState{UID: types.UID(text("uid")), ResourceVersion: text("version"), Hash: text("hash"), Digest: text("digest")},
		HubState:  member.HubState{HubGeneration: 3},
		Drifted:   []member.FieldDrift{{Path: text("path"), Manager: text("manager")}}, Last: seen,
	}
	if rapid.Bool().Draw(t, "confirmed") {
		out.Digest = seen.Digest
	}
	if rapid.Bool().Draw(t, "completed") {
		out.Reason = hubv1.ReasonCompleted
	}
	return Fact{
		Outcome: out, Observation: seen, Synced: rapid.Bool().Draw(t, "synced"), Connected: rapid.Bool().Draw(t, "connected"),
		LinkReason: text("linkReason"), LinkMessage: text("linkMessage"),
	}
}

// statusFaults returns a function that validates a binding's status against the CustomResourceDefinition in the chart.
func statusFaults(t *testing.T) func(status hubv1.BindingStatus) []string {
	t.Helper()
	raw, err := os.ReadFile("../../charts/hanse-hub/files/crds/hanse.dev_resourcebindings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	props := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		t.Fatal(err)
	}
	return func(status hubv1.BindingStatus) (out []string) {
		raw, err := json.Marshal(status)
		if err != nil {
			return []string{err.Error()}
		}
		var value map[string]any
		if err := json.Unmarshal(raw, &value); err != nil {
			return []string{err.Error()}
		}
		for _, fault := range validation.ValidateCustomResource(nil, value, validator) {
			out = append(out, fmt.Sprintf("%.300s", fault.Error()))
		}
		return out
	}
}

func TestWhateverMembersSendTheirRowsAreValidAndSmall(t *testing.T) {
	faults := statusFaults(t)
	rapid.Check(t, func(t *rapid.T) {
		in := Input{BindingGeneration: 1, ObjectUID: "hub-uid", HubGeneration: 3, Facts: map[string]Fact{}, Now: metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))}
		clusters := rapid.IntRange(1, 40).Draw(t, "clusters")
		fact := oddFact(t)
		for i := range clusters {
			name := fmt.Sprintf("eu-%d", i)
			in.Targets = append(in.Targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
			in.Facts[name] = fact
		}
		var previous hubv1.BindingStatus
		for range 2 {
			status, full := Status(previous, in)
			for _, fault := range faults(status) {
				t.Errorf("the status is not valid: %s", fault)
			}
			size := 0
			for _, row := range status.Clusters {
				raw, err := json.Marshal(row)
				if err != nil {
					t.Fatal(err)
				}
				size += len(raw)
				for _, text := range []string{row.Reason, row.Message, row.Digest, row.Hash, string(row.UID)} {
					if !utf8.ValidString(text) {
						t.Errorf("%q is no text: what is read back is another one", text)
					}
				}
			}
			if size > maxRows {
				t.Errorf("the rows take %d bytes", size)
			}
			if len(full) != clusters {
				t.Errorf("%d rows for %d clusters", len(full), clusters)
			}
			previous = status
		}
	})
}
