package dispatch

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// oneTemplate has one hub object.
type oneTemplate struct {
	Templates
	object *unstructured.Unstructured
}

// Get implements Templates.
func (t oneTemplate) Get(hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	return t.object, true
}

// The hub object has the UID present, and was created at the time now.
func TestACopyOfAnEarlierObjectIsNotWritten(t *testing.T) {
	t.Parallel()
	held := &hubv1.HeldRemoval{Reason: hubv1.ReasonMadeAnew, Policy: hubv1.RemovalDelete}
	for name, tc := range map[string]struct {
		recorded types.UID     // UID of the object in the binding
		bound    time.Duration // age of the binding when the object was created
		removal  *hubv1.HeldRemoval
		age      time.Duration // time since the object was created
		says     string        // empty: there is no outcome
		after    time.Duration // time of the next try; 0: an event queues the binding again
	}{
		"the leader is about to decide":                    {recorded: "earlier", bound: time.Hour, age: 10 * time.Second, after: 20 * time.Second},
		"the leader has decided to keep the copy":          {recorded: "earlier", bound: time.Hour, age: 30 * time.Second, says: "the condition Scheduled of the binding says why"},
		"the removal of the copy waits for a confirmation": {recorded: "earlier", bound: time.Hour, removal: held, says: "run hansectl confirm placement web -n ns"},
		"the cache of objects is older than the binding":   {recorded: "later", bound: -time.Hour, age: 2 * time.Hour},
		"the binding records the present object":           {recorded: "present", bound: time.Hour, age: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			present := &unstructured.Unstructured{}
			present.SetUID("present")
			present.SetCreationTimestamp(metav1.NewTime(now))
			r := newRun(&fakeCluster{}, tc.age)
			r.queue.opts.Templates = oneTemplate{object: present}
			r.target.Removal = tc.removal
			r.binding.SetCreationTimestamp(metav1.NewTime(now.Add(-tc.bound)))
			r.binding.BindingSpec().ObjectRef.UID = tc.recorded
			r.binding.BindingSpec().PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: "ns", Name: "web"}
			o, known := r.recreated()
			switch {
			case known != (tc.says != ""):
				t.Errorf("the outcome is %+v (known: %t), want %q", o, known, tc.says)
			case known && (o.Applied != metav1.ConditionFalse || o.Reason != hubv1.ReasonMadeAnew || !strings.Contains(o.Message, tc.says)):
				t.Errorf("the outcome is %+v, want %q", o, tc.says)
			case !known && tc.after == 0 && o.Retry != member.RetryNever:
				t.Errorf("the next try is after %s (%v), want none", o.After, o.Retry)
			case !known && tc.after > 0 && (o.Retry != member.RetryAfter || o.After != tc.after):
				t.Errorf("the next try is after %s (%v), want %s", o.After, o.Retry, tc.after)
			}
		})
	}
}
