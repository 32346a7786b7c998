package admission

import utiljson "k8s.io/apimachinery/pkg/util/json"

// decoded reads JSON as objects are read: whole numbers stay whole.
func decoded(raw []byte) (any, bool) {
	var v any
	err := utiljson.Unmarshal(raw, &v)
	return v, err == nil
}
