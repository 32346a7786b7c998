package informer

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// groups has the keys of the objects in each group of Options.Group.
type groups map[string]map[string]struct{}

// regroup moves the key of an object to the group of its new part. old is nil for a new object, and object is nil for a
// deleted one. The caller holds k.mu.
func (k *kind) regroup(key string, old, object metav1.Object) {
	if k.set.options.Group == nil {
		return
	}
	before, after := k.groupOf(old), k.groupOf(object)
	if before == after {
		return
	}
	if before != "" {
		delete(k.groups[before], key)
		if len(k.groups[before]) == 0 {
			delete(k.groups, before)
		}
	}
	if after == "" {
		return
	}
	if k.groups == nil {
		k.groups = groups{}
	}
	if k.groups[after] == nil {
		k.groups[after] = map[string]struct{}{}
	}
	k.groups[after][key] = struct{}{}
}

func (k *kind) groupOf(o metav1.Object) string {
	if o == nil {
		return ""
	}
	return k.set.options.Group(o)
}
