package admission

import utiljson "k8s.io/apimachinery/pkg/util/json"

// decoded decodes JSON in the same way as Kubernetes objects: whole numbers become int64. It returns false for invalid
// JSON.
func decoded(raw []byte) (any, bool) {
	var v any
	err := utiljson.Unmarshal(raw, &v)
	return v, err == nil
}
