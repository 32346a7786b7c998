package scopes

import toolscache "k8s.io/client-go/tools/cache"

// Last returns the object of an event of an informer. A watch that was away while an object was deleted gives only the
// last state that the cache had of it.
func Last(event any) any {
	if gone, ok := event.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return event
}
