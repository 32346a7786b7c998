package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// noticed is how long a row may be wrong until the hub has noticed the change of a copy or of its object.
	noticed = 15 * time.Second
	// recovered is how long after a disturbance of the hub or of copies a sample does not judge. A replica that was killed
	// is replaced after 17 s, and writes rows after that.
	recovered = 40 * time.Second
)

// sampler compares rows with copies while the hub works.
type sampler struct {
	judged int
	lies   []string
}

// sample takes samples until the context ends. Which objects it reads is not part of the plan.
func (r *run) sample(ctx context.Context, out *sampler) {
	random := rand.New(rand.NewPCG(r.opts.Seed, 1))
	keys := everyKey()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.follow(ctx, pick(random, keys), pick(random, Members), out)
	}
}

// follow takes one sample. If the row is untrue, it looks again until the row is true, or until its object or decision
// has changed. It is a lie if the row stays untrue although the hub had the time to notice, without a disturbance.
func (r *run) follow(ctx context.Context, k Key, member string, out *sampler) {
	first, reported, ok := r.observe(ctx, k, member)
	if !ok {
		return
	}
	out.judged++
	lie := Lie(first)
	for began := time.Now(); lie != "" && (time.Since(began) < noticed || r.disturbed(member)); {
		sleep(ctx, time.Second)
		now, same, ok := r.observe(ctx, k, member)
		if ctx.Err() != nil || !ok || same != reported {
			return
		}
		lie = Lie(now)
	}
	if lie != "" {
		out.lies = append(out.lies, fmt.Sprintf("%s %s on %s: %s, for %s", time.Now().Format("15:04:05"), k, member, lie, noticed))
	}
}

// Observation is a binding, the hub object and the copy on one member, where the binding was the same before and after
// the other two were read. Object is nil for objects of a Bundle, and Copy is nil if there is no copy.
type Observation struct {
	Binding      *hubv1.ResourceBinding
	Member       string
	Object, Copy *unstructured.Unstructured
}

// Lie returns what is untrue of the row of a member, or "". A row is judged if it says that the current decision is
// applied, and that the member is observed now.
func Lie(o Observation) string {
	b := o.Binding
	target, row := b.Spec.Target(o.Member), b.Status.Row(o.Member)
	if b.DeletionTimestamp != nil || b.Status.ObservedGeneration != b.Generation || target == nil || target.State != hubv1.TargetPresent ||
		row == nil || row.Applied != metav1.ConditionTrue || row.LastObservedTime != nil {
		return ""
	}
	if o.Copy == nil {
		return "the row is Applied=True, and the copy is missing"
	}
	if row.UID != o.Copy.GetUID() {
		return fmt.Sprintf("the row has uid %s, and the copy %s", row.UID, o.Copy.GetUID())
	}
	if digest := o.Copy.GetAnnotations()[hubv1.DigestAnnotation]; row.Digest != digest {
		return fmt.Sprintf("the row has digest %s, and the copy %s", row.Digest, digest)
	}
	if o.Object == nil || o.Object.GetNamespace() == staged { // a row of an earlier revision is Applied, too
		return ""
	}
	if want, have := content(o.Object)["value"], content(o.Copy)["value"]; !reflect.DeepEqual(want, have) {
		return fmt.Sprintf("the row is Applied=True with content %v, and the object has %v", have, want)
	}
	return ""
}

// observe reads a binding, its object and the copy on a member, and the binding again. reported identifies the state of
// the object and the row: as long as it is the same, the row must become true.
func (r *run) observe(ctx context.Context, k Key, member string) (o Observation, reported string, ok bool) {
	var before, after hubv1.ResourceBinding
	key := bindingOf(k)
	if err := r.users.admin.Get(ctx, key, &before); err != nil {
		return o, "", false
	}
	o = Observation{Binding: &before, Member: member, Object: object(k, 0, ""), Copy: object(k, 0, "")}
	if before.Spec.ObjectRef.Bundle != nil {
		o.Object = nil
	} else if err := r.users.admin.Get(ctx, client.ObjectKeyFromObject(o.Object), o.Object); err != nil {
		return o, "", false
	}
	if err := r.site.members[member].Get(ctx, client.ObjectKeyFromObject(o.Copy), o.Copy); apierrors.IsNotFound(err) {
		o.Copy = nil
	} else if err != nil {
		return o, "", false
	}
	if err := r.users.admin.Get(ctx, key, &after); err != nil || after.ResourceVersion != before.ResourceVersion {
		return o, "", false
	}
	reported = fmt.Sprint(before.UID, before.Generation)
	if o.Object != nil {
		reported += fmt.Sprint(o.Object.GetUID(), content(o.Object))
	}
	return o, reported, true
}

// noteHub notes a disturbance of the hub.
func (r *run) noteHub() {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.disturbances = append(r.faults.disturbances, disturbance{at: time.Now()})
}

// noteHand notes a change of copies on a member that the hub did not make.
func (r *run) noteHand(member string) {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	r.faults.disturbances = append(r.faults.disturbances, disturbance{at: time.Now(), member: member})
}

// disturbance is something after which rows may be wrong for a time: of one member, or of all if member is empty.
type disturbance struct {
	at     time.Time
	member string
}

func (r *run) disturbed(member string) bool {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	return slices.ContainsFunc(r.faults.disturbances, func(d disturbance) bool {
		return (d.member == "" || d.member == member) && time.Since(d.at) < recovered
	})
}
