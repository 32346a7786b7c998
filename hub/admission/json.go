package admission

import utiljson "k8s.io/apimachinery/pkg/util/json"

// decoded reads JSON as Kubernetes objects are read: whole numbers become integers.
func decoded(raw []byte) (any, bool) {
	var v any
	err := utiljson.Unmarshal(raw, &v)
	return v, err == nil
}
