package v1alpha1

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SettingsAnnotation of a binding has settings of the placement that the object follows. If the placement is deleted,
// the copies stay, and the hub still needs these settings. The settings are apply, deletion, statusAggregation, and the
// references with restart OnChange. Values that are defaults are left out.
const SettingsAnnotation = Prefix + "settings"

// Settings returns the value of SettingsAnnotation for a placement. It is empty if all settings are defaults. Two
// fields are left out on purpose. adoption is not needed, because no cluster is added without a placement. suspend
// would last for ever, because no user could end it.
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

	kept := map[string]any{} // the settings, by their field in a PlacementSpec
	if !reflect.DeepEqual(apply, ApplyPolicy{}) {
		kept["apply"] = apply
	}
	if deletion != (DeletionPolicy{}) {
		kept["deletion"] = deletion
	}
	if !reflect.DeepEqual(status, StatusAggregation{}) {
		kept["statusAggregation"] = status
	}
	var restarts []ReferenceRule
	for _, path := range s.RestartPaths() {
		restarts = append(restarts, ReferenceRule{Path: path, Restart: RestartOnChange})
	}
	if len(restarts) > 0 {
		kept["references"] = restarts
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

// LastSettings returns the settings in the SettingsAnnotation of a binding as a PlacementSpec. If the annotation cannot
// be parsed, the spec forbids writes to members and to the status of the hub object.
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
