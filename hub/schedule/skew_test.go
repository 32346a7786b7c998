package schedule

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// TestAnOlderLeaderKeepsFieldsOfTheSpecThatItDoesNotKnow adds fields to a decision as a newer leader would. The
// scheduler then changes the decision. The test changes a CRD, so it does not run beside other tests.
func TestAnOlderLeaderKeepsFieldsOfTheSpecThatItDoesNotKnow(t *testing.T) {
	s := newScene(t, "older-leader", "eu", "us")
	err := apiserver.AddNewerField(t.Context(), hubConfig, "resourcebindings.hanse.dev", []string{"spec"}, []string{"spec", "clusters", "items"})
	if err != nil {
		t.Fatal(err)
	}
	s.object()
	p := s.place("web", "eu")
	s.create(p)
	s.becomes("eu")

	s.eventually("newer fields are stored", func() error {
		b, err := s.rawBinding()
		if err != nil {
			return err
		}
		spec := b.Object["spec"].(map[string]any)
		spec[apiserver.NewerField] = "spec"
		spec["clusters"].([]any)[0].(map[string]any)[apiserver.NewerField] = "target"
		if err := hubClient.Update(t.Context(), b); err != nil {
			return err
		}
		if newer := s.newerFields(); newer != "spec target" {
			return fmt.Errorf("the binding has %q", newer)
		}
		return nil
	})

	s.edit(p, func() { p.Spec.Apply.MemberOwnedFields = []string{"/spec/replicas"} })
	s.eventually("the settings are written", func() error {
		if s.binding().Annotations[hubv1.SettingsAnnotation] == "" {
			return errors.New("there are none")
		}
		return nil
	})
	if newer := s.newerFields(); newer != "spec target" {
		t.Errorf("after a change that leaves the targets alone, the binding has the newer fields %q", newer)
	}

	s.edit(p, func() { p.Spec.Clusters = s.only("eu", "us") })
	s.becomes("eu", "us")
	if newer := s.newerFields(); newer != "spec" {
		t.Errorf("after a change of the targets, the binding has the newer fields %q; docs/upgrade.md says that those of targets go", newer)
	}
}

// newerFields returns those fields of the stored binding that only a newer hub knows.
func (s *scene) newerFields() string {
	s.t.Helper()
	b, err := s.rawBinding()
	if err != nil {
		s.t.Fatal(err)
	}
	text, _, _ := unstructured.NestedString(b.Object, "spec", apiserver.NewerField)
	targets, _, _ := unstructured.NestedSlice(b.Object, "spec", "clusters")
	for _, raw := range targets {
		target, _ := raw.(map[string]any)
		if value, ok := target[apiserver.NewerField]; ok {
			text += fmt.Sprint(" ", value)
		}
	}
	return text
}

// rawBinding reads the binding as unstructured content. Unlike the Go types, it keeps fields that a newer version of
// the API has added.
func (s *scene) rawBinding() (*unstructured.Unstructured, error) {
	b := &unstructured.Unstructured{}
	b.SetGroupVersionKind(hubv1.GroupVersion.WithKind("ResourceBinding"))
	return b, hubClient.Get(s.t.Context(), s.id.BindingKey(), b)
}
