package dispatch

import "k8s.io/apimachinery/pkg/types"

// oversized has the keys whose last answer from the member was larger than a limit. A member that sends endless answers
// does so for many objects. When it gives a good answer again, the gate therefore tries each of these keys at once, and
// does not wait for their slow retries. A key whose answer is too large again waits for its slow retry, because its
// object may be the cause.
type oversized map[types.NamespacedName]oversizedKey

type oversizedKey struct {
	priority int
	released bool
}

// failed records an answer that was too large.
func (o oversized) failed(d due) {
	if _, known := o[d.key]; !known {
		o[d.key] = oversizedKey{priority: d.priority}
	}
}

// answered records a good answer about a key, and returns the other keys that are tried at once.
func (o oversized) answered(key types.NamespacedName) (out []due) {
	delete(o, key)
	for other, k := range o {
		if !k.released {
			k.released = true
			o[other] = k
			out = append(out, due{other, k.priority})
		}
	}
	return out
}
