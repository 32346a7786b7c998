package scopes

import toolscache "k8s.io/client-go/tools/cache"

// Last returns the object of an informer event. If a watch has missed a deletion, the event has only the last cached
// state of the object, which Last unwraps.
func Last(event any) any {
	if gone, ok := event.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return event
}
