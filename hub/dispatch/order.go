package dispatch

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	normalPriority = 0
	// lowPriority is for replays: a change that is made now overtakes them.
	lowPriority = -100
	// topClass is the highest rank; -topClass is the lowest class.
	topClass = 4
)

// Rank is how early a kind goes among keys that are due together: what others need goes first.
func Rank(gk schema.GroupKind) int {
	switch {
	case gk == schema.GroupKind{Kind: "Namespace"}:
		return topClass
	case gk == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}:
		return 3
	case gk.Group == rbacv1.GroupName, gk == schema.GroupKind{Kind: "ServiceAccount"}:
		return 2
	case gk == schema.GroupKind{Kind: "ConfigMap"}, gk == schema.GroupKind{Kind: "Secret"}:
		return 1
	}
	return 0
}

// classFor is the rank of a binding's object; withdrawals go the other way round.
func classFor(b hubv1.BindingObject, t *hubv1.BindingTarget) int {
	r := Rank(hubv1.ObjectOf(b).GroupKind())
	if t != nil && t.State == hubv1.TargetAbsent {
		return -r
	}
	return r
}

// classOf finds the class again that was added to a priority.
func classOf(priority int) int {
	if priority < lowPriority/2 {
		return priority - lowPriority
	}
	return priority - normalPriority
}

// due is a key with the priority that it is to be queued at.
type due struct {
	key      types.NamespacedName
	priority int
}

// inOrder sorts keys so that each is queued after those that go before it: a worker takes the first as soon as it is
// there.
func inOrder(keys []due) []due {
	slices.SortStableFunc(keys, func(a, b due) int { return cmp.Compare(b.priority, a.priority) })
	return keys
}
