package observe

import (
	"bytes"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/member/health"
)

// The longest annotations of ours that are believed: a member may write what it likes there, and we keep it.
const (
	longestOwner  = 1024
	longestDigest = 128
)

// record is an observation as kindwatch keeps it.
type record struct {
	*metav1.ObjectMeta // nothing: the names are in the observation
	observation        member.Observation
}

var nothing = &metav1.ObjectMeta{}

// GetNamespace implements metav1.Object.
func (r *record) GetNamespace() string { return r.observation.Namespace }

// GetName implements metav1.Object.
func (r *record) GetName() string { return r.observation.Name }

// GetUID implements metav1.Object.
func (r *record) GetUID() types.UID { return r.observation.UID }

// GetResourceVersion implements metav1.Object.
func (r *record) GetResourceVersion() string { return r.observation.ResourceVersion }

// newRecord computes the observation of a whole object. Words that many objects share are kept once.
func newRecord(u *unstructured.Unstructured, hasStatus bool) *record {
	gvk := u.GroupVersionKind()
	gvk.Group, gvk.Version, gvk.Kind = shared(gvk.Group), shared(gvk.Version), shared(gvk.Kind)
	o := member.Observation{
		GVK:                gvk,
		Namespace:          shared(u.GetNamespace()),
		Name:               u.GetName(),
		UID:                u.GetUID(),
		ResourceVersion:    u.GetResourceVersion(),
		Generation:         u.GetGeneration(),
		Deleting:           u.GetDeletionTimestamp() != nil,
		ObservedGeneration: health.ObservedGeneration(u),
	}
	annotations := u.GetAnnotations()
	if owner := annotations[hubv1.OwnerAnnotation]; len(owner) <= longestOwner {
		if id, uid, err := hubv1.ParseOwner(owner); err == nil {
			id.Group, id.Kind, id.Namespace = shared(id.Group), shared(id.Kind), shared(id.Namespace)
			o.Owner, o.OwnerUID = id, uid
		}
	}
	if digest := annotations[hubv1.DigestAnnotation]; len(digest) <= longestDigest {
		o.Digest = digest
	}
	if t, err := time.Parse(time.RFC3339, annotations[hubv1.PauseAnnotation]); err == nil {
		o.Paused = t
	}
	o.Hash, _ = content.Hash(u)
	v := health.Assess(u, hasStatus)
	o.Health, o.HealthReason, o.HealthMessage = v.Health, strings.Clone(v.Reason), strings.Clone(v.Message) // not a part of a long text
	if status, ok := u.Object["status"].(map[string]any); ok {
		o.Observed = health.Project(status)
	}
	return &record{ObjectMeta: nothing, observation: o}
}

func shared(s string) string { return unique.Make(s).Value() }

// sameContent is true if only health and status moved.
func (r *record) sameContent(other *record) bool {
	a, b := r.observation, other.observation
	return a.UID == b.UID && a.Deleting == b.Deleting && a.Owner == b.Owner && a.OwnerUID == b.OwnerUID &&
		a.Digest == b.Digest && a.Hash == b.Hash && a.Paused.Equal(b.Paused)
}

// equal is true if there is nothing to tell: a new resourceVersion alone says nothing.
func (r *record) equal(other *record) bool {
	a, b := r.observation, other.observation
	return r.sameContent(other) && a.Generation == b.Generation && a.ObservedGeneration == b.ObservedGeneration &&
		a.Health == b.Health && a.HealthReason == b.HealthReason && a.HealthMessage == b.HealthMessage &&
		bytes.Equal(a.Observed, b.Observed)
}
