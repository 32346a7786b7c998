package tracing

import (
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TraceOf returns the trace ID of the deletion of an object, for tests of other packages.
func TraceOf(hub string, uid types.UID) string {
	t := NewWith(nil, 1, Process{HubID: hub})
	return t.Deletion(hubv1.ObjectIdentity{}, uid).trace.String()
}
