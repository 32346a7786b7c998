package cache

import (
	"bytes"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/member/epoch"
	"github.com/hanse-dev/hanse/member/health"
)

// These are the maximum lengths of the texts that are kept, because users of a member may write any text. A longer
// annotation is ignored. A longer reason or message is cut.
const (
	maxOwner   = 1024
	maxDigest  = 128
	maxReason  = 64
	maxMessage = 256
)

// record is an observation in a compact form, because a hub keeps one for each copy on each member.
type record struct {
	// ObjectMeta is always nil. Only the overridden methods for namespace, name, UID and resourceVersion may be called.
	*metav1.ObjectMeta
	common             unique.Handle[common]
	name               string
	uid                types.UID
	resourceVersion    string
	generation         int64
	observedGeneration int64
	marks              marks
	hash               string
	message            string // explains the health
	observed           []byte
}

// marks has the values of the annotations that the hub sets on copies and that differ between most copies.
type marks struct {
	ownerUID         types.UID
	sourceGeneration int64
	decision         epoch.Decision
	digest           string
}

// common has values that many objects of a member share. Objects with equal values share one instance.
type common struct {
	gvk       schema.GroupVersionKind
	namespace string
	deleting  bool
	adopted   bool
	unclaimed bool // no binding claimed the object when it was read, so that its status was not read
	// owner is the hub object of the copy. Its name is empty if it equals the name of the copy.
	owner  hubv1.ObjectIdentity
	paused time.Time
	epoch  epoch.Epoch
	health hubv1.Health
	reason string
	// settings are the settings of the placement with which the health and the kept part of the status were computed.
	settings *health.Settings
}

var nothing = &metav1.ObjectMeta{}

// structSize is an upper bound of the memory of a record and its common values without their texts, and of the rounding
// of the texts.
const structSize = 576

// Size implements informer.Sized.
func (r *record) Size() int64 {
	c, texts := r.common.Value(), len(r.observed)
	for _, text := range []string{
		r.name, string(r.uid), r.resourceVersion, string(r.marks.ownerUID), r.marks.digest, r.hash, r.message,
		c.gvk.Group, c.gvk.Version, c.gvk.Kind, c.namespace, c.owner.Group, c.owner.Kind, c.owner.Namespace, c.owner.Name, c.epoch.Random, c.reason,
	} {
		texts += len(text)
	}
	return int64(structSize + texts + texts/8)
}

// GetNamespace implements metav1.Object.
func (r *record) GetNamespace() string { return r.common.Value().namespace }

// GetName implements metav1.Object.
func (r *record) GetName() string { return r.name }

// GetUID implements metav1.Object.
func (r *record) GetUID() types.UID { return r.uid }

// GetResourceVersion implements metav1.Object.
func (r *record) GetResourceVersion() string { return r.resourceVersion }

// definitionKind is the kind of CustomResourceDefinitions.
var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// newRecord computes the record of an object that a watch has delivered, and that a binding claims.
func newRecord(key canonical.Key, u *unstructured.Unstructured, conventions health.Conventions, settings *health.Settings) *record {
	r, c := newMarks(key, u)
	c.settings = settings
	v := settings.Assess(u, conventions)
	c.health, c.reason, r.message = v.Health, member.Line(v.Reason, maxReason), member.Line(v.Message, maxMessage)
	// Even without a status, Project must record that the values at the paths of the settings are missing.
	if status, ok := u.Object["status"].(map[string]any); ok || settings != nil {
		projected := settings
		if c.gvk.GroupKind() == definitionKind {
			projected = settings.And("/status/storedVersions") // hub/bundles reads them
		}
		r.observed = bytes.Clone(projected.Project(c.gvk.GroupKind(), status)) // without spare capacity
	}
	r.common = unique.Make(c)
	return r
}

// newUnclaimed computes the record of an object that no binding claims. It has the names and marks of the object, by
// which such copies are counted, and nothing else.
func newUnclaimed(key canonical.Key, u *unstructured.Unstructured) *record {
	r, c := newMarks(key, u)
	c.unclaimed = true
	r.common = unique.Make(c)
	return r
}

// newMarks returns a record with the names and marks of an object, without its common values.
func newMarks(key canonical.Key, u *unstructured.Unstructured) (*record, common) {
	r := &record{
		ObjectMeta: nothing, name: u.GetName(), uid: u.GetUID(), resourceVersion: u.GetResourceVersion(),
		generation: u.GetGeneration(), observedGeneration: health.ObservedGeneration(u),
	}
	c := common{gvk: u.GroupVersionKind(), namespace: u.GetNamespace(), deleting: u.GetDeletionTimestamp() != nil}
	r.marks = c.readMarks(u)
	r.hash, _ = content.Hash(key, u)
	return r, c
}

// readMarks reads the hub's annotations. It stores the values that many objects share in c, and returns the other
// values.
func (c *common) readMarks(u *unstructured.Unstructured) (m marks) {
	annotation := annotations(u)
	if owner := annotation(hubv1.OwnerAnnotation); len(owner) <= maxOwner {
		if id, uid, err := hubv1.ParseOwner(owner); err == nil {
			// The UID is cloned, so that the whole annotation does not stay in memory.
			c.owner, m.ownerUID = id, types.UID(strings.Clone(string(uid)))
			if id.Name == u.GetName() {
				c.owner.Name = ""
			}
		}
	}
	if digest := annotation(hubv1.DigestAnnotation); len(digest) <= maxDigest {
		m.digest = strings.Clone(digest)
	}
	c.adopted = annotation(hubv1.AdoptedAnnotation) == "true"
	mark := epoch.ReadMark(annotation(hubv1.SourceAnnotation), annotation(hubv1.DecisionAnnotation))
	mark.Epoch.Random, mark.Decision.Binding = strings.Clone(mark.Epoch.Random), strings.Clone(mark.Decision.Binding)
	m.sourceGeneration, m.decision, c.epoch = mark.Generation, mark.Decision, mark.Epoch
	if pause := annotation(hubv1.PauseAnnotation); pause != "" {
		if t, err := time.Parse(time.RFC3339, pause); err == nil {
			c.paused = t
		}
	}
	return m
}

// annotations returns a function that reads one annotation, because the object's accessor copies all annotations.
func annotations(u *unstructured.Unstructured) (annotation func(name string) string) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	all, _ := metadata["annotations"].(map[string]any)
	return func(name string) string {
		text, _ := all[name].(string)
		return text
	}
}

// observation converts the record to the member.Observation that the hub's controllers read.
func (r *record) observation() member.Observation {
	c := r.common.Value()
	o := member.Observation{
		GVK: c.gvk, Namespace: c.namespace, Name: r.name, Deleting: c.deleting,
		CopyState: member.CopyState{
			UID: r.uid, ResourceVersion: r.resourceVersion, Generation: r.generation, Digest: r.marks.digest, Hash: r.hash, Adopted: c.adopted,
		},
		Owner: c.owner, OwnerUID: r.marks.ownerUID, Paused: c.paused,
		Source:     epoch.Mark{Generation: r.marks.sourceGeneration, Epoch: c.epoch, Decision: r.marks.decision},
		Assessment: member.Assessment{Health: c.health, HealthReason: c.reason, HealthMessage: r.message},
		Observed:   r.observed, ObservedGeneration: r.observedGeneration,
	}
	if o.Owner.Kind != "" && o.Owner.Name == "" {
		o.Owner.Name = r.name
	}
	return o
}

// sameContent reports whether two records have the same content of the copy. Their health and status may differ.
func (r *record) sameContent(other *record) bool {
	a, b := r.common.Value(), other.common.Value()
	return r.uid == other.uid && a.deleting == b.deleting && a.owner == b.owner && r.marks.ownerUID == other.marks.ownerUID &&
		r.marks.digest == other.marks.digest && r.hash == other.hash && a.paused.Equal(b.paused)
}

// equal reports whether two records have the same content, generation, health and status. If so, the handler of changes
// need not be called.
func (r *record) equal(other *record) bool {
	a, b := r.common.Value(), other.common.Value()
	return r.sameContent(other) && r.generation == other.generation && r.observedGeneration == other.observedGeneration &&
		a.health == b.health && a.reason == b.reason && r.message == other.message && bytes.Equal(r.observed, other.observed)
}
