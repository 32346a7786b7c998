package schedule

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Withdrawn records that every cluster from which the binding withdraws a copy has confirmed the withdrawal. hub/report
// calls Withdrawn before it writes the binding's rows. isNew is false if the confirmations were recorded before.
func (s *Scheduler) Withdrawn(b hubv1.BindingObject) (isNew bool) {
	if !s.inputs.gone.copies.note(b) {
		return false
	}
	if _, q := s.leading(); q != nil {
		s.add(q, hubv1.ObjectOf(b))
	}
	return true
}

// withdrawals has the bindings for which all clusters have confirmed the withdrawals. If this record is lost, the hub
// asks the members again.
type withdrawals struct {
	mu   sync.Mutex
	done map[types.NamespacedName]withdrawal
}

type withdrawal struct {
	uid        types.UID
	generation int64
}

// note records that the members have confirmed all withdrawals of a binding: none of its clusters has a copy any more.
// It returns false if this was recorded before.
func (w *withdrawals) note(b hubv1.BindingObject) (isNew bool) {
	if w.cover(b) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = map[types.NamespacedName]withdrawal{}
	}
	w.done[client.ObjectKeyFromObject(b)] = withdrawal{b.GetUID(), b.GetGeneration()}
	return true
}

// cover reports whether confirmed withdrawals are recorded for this generation of the binding. For a binding that is
// being deleted, the previous generation counts, too, because the deletion increases the generation.
func (w *withdrawals) cover(b hubv1.BindingObject) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	d, ok := w.done[client.ObjectKeyFromObject(b)]
	return ok && d.uid == b.GetUID() && (d.generation == b.GetGeneration() || b.GetDeletionTimestamp() != nil && d.generation == b.GetGeneration()-1)
}

func (w *withdrawals) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.done, key)
}
