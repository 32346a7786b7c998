package membership

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

var oddText = rapid.SampledFrom([]string{
	"", "a", "v1", strings.Repeat("x", 65), strings.Repeat("x", 1<<16), strings.Repeat("é", 100), strings.Repeat("😀", 300), strings.Repeat("\x00", 1<<16),
	strings.Repeat("\xff", 1<<16), strings.Repeat(`"\`, 1<<14), "a\u2028b\nc", strings.Repeat("é", 31) + "x\xc3",
})

func TestWhateverAMemberSaysOfItselfItsStatusIsValidAndSmall(t *testing.T) {
	raw, err := os.ReadFile("../../charts/hanse-hub/files/crds/hanse.dev_memberclusters.yaml")
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
	rapid.Check(t, func(t *rapid.T) {
		text := func(what string) string { return oddText.Draw(t, what) }
		facts := member.Facts{
			ClusterID: text("id"), Kubernetes: text("version"), Region: text("region"),
			Capacity: corev1.ResourceList{}, Allocatable: corev1.ResourceList{}, Served: map[schema.GroupKind][]string{},
		}
		for i := range rapid.IntRange(0, 80).Draw(t, "many") {
			facts.Zones = append(facts.Zones, text("zone"))
			facts.Capacity[corev1.ResourceName(fmt.Sprintf("%s%d", text("resource"), i))] = resource.MustParse("1")
			facts.Served[schema.GroupKind{Group: "example.com", Kind: fmt.Sprintf("Kind%d", i)}] = []string{text("version"), text("version")}
		}
		c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-fra-1"}}
		observed(c, member.LinkState{
			Ready: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable, Message: text("message"), TooLarge: text("large"),
			Credentials: metav1.ConditionFalse, CredentialsReason: hubv1.ReasonUnauthorized, CredentialsMessage: text("message"), Facts: facts,
		}, "hub", time.Now())
		written, err := json.Marshal(c.Status)
		if err != nil {
			t.Fatal(err)
		}
		if len(written) > 200<<10 {
			t.Errorf("the status takes %d bytes", len(written))
		}
		var value map[string]any
		if err := json.Unmarshal(written, &value); err != nil {
			t.Fatal(err)
		}
		for _, fault := range validation.ValidateCustomResource(nil, value, validator) {
			t.Errorf("the status is not valid: %.300s", fault.Error())
		}
	})
}
