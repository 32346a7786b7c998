package dispatch

import (
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/member"
)

func TestAContestedFieldIsLeftToMembersByItsPointer(t *testing.T) {
	for path, want := range map[string]string{
		".spec.replicas": "list /spec/replicas in apply.memberOwnedFields",
		`.webhooks[name="validation.mesh.example.com"].failurePolicy`:            "list /webhooks in apply.memberOwnedFields",
		`.spec.template.spec.containers[name="main"].resources.limits["memory"]`: "list /spec/template/spec/containers in apply.memberOwnedFields",
		".metadata.labels.example.com/tier":                                      "list the field in apply.memberOwnedFields",
		".data.app.yaml":                                                         "list the field in apply.memberOwnedFields",
	} {
		text := contested(member.FieldDrift{Path: path, Manager: "tuner"})
		if !strings.HasPrefix(text, "field manager tuner keeps changing "+path+"; the hub restores it every 30 s: "+want+", stop that manager") {
			t.Errorf("%s: %s", path, text)
		}
	}
}
