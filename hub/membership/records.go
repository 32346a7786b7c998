package membership

import (
	"crypto/sha256"
	"sync"
	"time"
)

// record is what this replica remembers of one MemberCluster and the status does not say.
type record struct {
	// refused is set if another MemberCluster holds the cluster, so that it is not dialled again and again.
	refused refused
	// capacityWritten and observedWritten are when capacity and lastObservedTime of the status were last written.
	capacityWritten, observedWritten time.Time
}

// refused is the cluster that a MemberCluster found behind its kubeconfig although another MemberCluster holds it. It
// is not in the status: a clusterID there never changes, and this MemberCluster may get another kubeconfig.
type refused struct {
	clusterID  string
	kubeconfig [sha256.Size]byte
}

// records are kept by MemberCluster.
type records struct {
	mu        sync.Mutex
	byCluster map[string]record
}

// of returns the record of a cluster; it is empty if there is none.
func (r *records) of(cluster string) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byCluster[cluster]
}

func (r *records) change(cluster string, change func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byCluster == nil {
		r.byCluster = map[string]record{}
	}
	changed := r.byCluster[cluster]
	change(&changed)
	r.byCluster[cluster] = changed
}

func (r *records) forget(cluster string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byCluster, cluster)
}
