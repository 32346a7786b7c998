package dispatch

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/overrides"
)

// digest names what is sent. Fields that are left to the member once the object is there do not count: what the template says
// of them is for new copies only. That they are left to it does.
func (r *run) digest(manifest *unstructured.Unstructured) string {
	salt := string(r.binding.BindingSpec().ObjectRef.UID)
	owned := r.policy().Apply.MemberOwnedFields
	if len(owned) == 0 {
		return r.rendering.digestOf(r.queue.renderings.key, manifest, salt)
	}
	counted := manifest.DeepCopy()
	for _, pointer := range owned {
		unstructured.RemoveNestedField(counted.Object, steps(pointer)...)
	}
	return overrides.Digest(r.queue.renderings.key, counted, append([]string{salt}, owned...)...)
}

// steps are the keys that a JSON pointer names.
func steps(pointer string) []string {
	out := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, s := range out {
		out[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return out
}
