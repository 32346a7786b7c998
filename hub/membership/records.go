package membership

import (
	"crypto/sha256"
	"sync"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// record has data about one MemberCluster that is only in the memory of this replica, and not in the status.
type record struct {
	// refused is set if another MemberCluster represents the same cluster. The hub then does not connect to the cluster
	// again for this MemberCluster.
	refused refused
	// claimed is the clusterID that this replica has set in the status. The write may have failed.
	claimed string
	// capacityWritten and observedWritten are the times at which capacity and lastObservedTime were last written to the
	// status.
	capacityWritten, observedWritten time.Time
	// request is an agent that has asked to be approved. The status gets it.
	request hubv1.AgentRequest
}

// refused records that another MemberCluster represents the cluster that this MemberCluster reaches. The clusterID
// is not written to the status of this MemberCluster, because a clusterID in a status never changes. This MemberCluster
// may get another route later, such as another kubeconfig.
type refused struct {
	clusterID string
	route     [sha256.Size]byte
}

// records has the data about each MemberCluster that is only in the memory of this replica.
type records struct {
	mu        sync.Mutex
	byCluster map[string]record
}

// of returns the data about a MemberCluster in this replica's memory. The result is empty if there is none.
func (r *records) of(cluster string) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byCluster[cluster]
}

// refusedFor returns the names of the MemberClusters that this replica refused because another one represents the
// cluster with this ID.
func (r *records) refusedFor(clusterID string) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, known := range r.byCluster {
		if known.refused.clusterID == clusterID {
			names = append(names, name)
		}
	}
	return names
}

// claimantsOf returns the names of the MemberClusters for which this replica has claimed the cluster with this ID.
func (r *records) claimantsOf(clusterID string) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, known := range r.byCluster {
		if known.claimed == clusterID {
			names = append(names, name)
		}
	}
	return names
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
