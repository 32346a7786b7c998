package dispatch

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanse-dev/hanse/overrides"
)

// digest returns the digest of the manifest without the fields that the member owns.
func (r *run) digest(manifest *unstructured.Unstructured) string {
	salt := string(r.binding.BindingSpec().ObjectRef.UID)
	owned := r.policy().Apply.MemberOwnedFields
	if len(owned) == 0 {
		return r.out.rendering.digestOf(r.queue.renderings.key, manifest, salt)
	}
	return overrides.DigestLeaving(r.queue.renderings.key, manifest, owned, salt)
}
