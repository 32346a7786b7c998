package v1alpha1

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SettingsAnnotation of a binding keeps how its placement wants copies to be written and removed, and their statuses to
// be read and merged, as far as that is not the default. A placement that was deleted can no longer be asked, and its
// objects stay where they are.
const SettingsAnnotation = Prefix + "settings"

// Settings is the value of the SettingsAnnotation; empty if everything is as by default. Adoption is not kept: no
// cluster is added without a placement, and who cannot be asked adopts nothing. Neither is suspend: it must not outlast
// what lifts it.
func (s *PlacementSpec) Settings() string {
	apply := s.Apply
	apply.Adoption = ""
	unset(&apply.Mode, ApplyEnforce)
	unset(&apply.FieldConflict, FieldConflictTake)
	unset(&apply.UnknownFields, UnknownFieldsReject)
	unset(&apply.Recreate, RecreateUntilCompleted)
	if apply.CreateNamespace != nil && *apply.CreateNamespace {
		apply.CreateNamespace = nil
	}
	deletion := DeletionPolicy{Adopted: s.Deletion.Adopted, PropagationPolicy: s.Deletion.PropagationPolicy}
	unset(&deletion.Adopted, RemovalOrphan)
	unset(&deletion.PropagationPolicy, metav1.DeletePropagationBackground)
	status := s.StatusAggregation
	unset(&status.Mode, StatusOnObject)

	kept := map[string]any{} // as in a PlacementSpec
	if !reflect.DeepEqual(apply, ApplyPolicy{}) {
		kept["apply"] = apply
	}
	if deletion != (DeletionPolicy{}) {
		kept["deletion"] = deletion
	}
	if !reflect.DeepEqual(status, StatusAggregation{}) {
		kept["statusAggregation"] = status
	}
	if len(kept) == 0 {
		return ""
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return "" // strings and booleans can always be marshalled
	}
	return string(text)
}

func unset[T ~string](v *T, standard T) {
	if *v == standard {
		*v = ""
	}
}

// LastSettings is what a binding has kept of its placement: a spec with nothing but settings. What cannot be read
// forbids to write, to members and to the status of the hub object.
func LastSettings(b BindingObject) PlacementSpec {
	var s PlacementSpec
	text := b.GetAnnotations()[SettingsAnnotation]
	if text == "" {
		return s
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return PlacementSpec{Apply: ApplyPolicy{Mode: ApplyReportOnly}, StatusAggregation: StatusAggregation{Mode: StatusBindingOnly}}
	}
	return s
}
