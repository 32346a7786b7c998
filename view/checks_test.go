package view

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestClocksAreCompared(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		got  Check
		want Finding
	}{
		"the Lease was renewed just now":     {CheckClock(now.Add(-time.Second), now), FindingOK},
		"the hub's clock is ahead":           {CheckClock(now.Add(time.Minute), now), FindingWarning},
		"a bundle that holds no certificate": {CheckCA("webhook", []byte("none"), now), FindingFailed},
	} {
		if tc.got.Result != tc.want {
			t.Errorf("%s: %+v, want %s", name, tc.got, tc.want)
		}
	}
}

func TestChecksAreTheLastPartOfTheProblems(t *testing.T) {
	t.Parallel()
	var without, with strings.Builder
	found := NewGatherer(nil).Worst(10)
	found.Write(&without, now)
	found.Checks = []Check{{Name: "hub", Result: FindingFailed, Message: "no hub runs", Do: "start it"}}
	found.Write(&with, now)
	last, ok := strings.CutPrefix(with.String(), without.String())
	if want := "\nChecks\nCHECK   RESULT   MESSAGE\nhub     Failed   no hub runs; do: start it\n"; !ok || last != want {
		t.Errorf("got %q, want %q", last, want)
	}
}

func TestAMemberIsCheckedByItsConditionsAndCredentials(t *testing.T) {
	t.Parallel()
	ready := metav1.Condition{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: hubv1.ReasonConnected}
	of := func(edit func(*hubv1.MemberClusterStatus), conditions ...metav1.Condition) *hubv1.MemberCluster {
		m := &hubv1.MemberCluster{Status: hubv1.MemberClusterStatus{Conditions: conditions}}
		if edit != nil {
			edit(&m.Status)
		}
		return m
	}
	refused := metav1.Condition{Type: hubv1.ConditionCredentialsValid, Status: metav1.ConditionUnknown, Reason: hubv1.ReasonCertificateUnknown}
	tried := metav1.Condition{Type: hubv1.ConditionCredentialsValid, Status: metav1.ConditionUnknown, Reason: hubv1.ReasonConnecting}
	tomorrow, before := metav1.NewTime(now.Add(24*time.Hour)), metav1.NewTime(now.Add(-time.Hour))
	for name, tc := range map[string]struct {
		member *hubv1.MemberCluster
		want   Finding
	}{
		"new":   {of(nil), FindingWarning},
		"ready": {of(nil, ready), FindingOK},
		"lost":  {of(nil, metav1.Condition{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable}), FindingFailed},
		"ready, and its nodes moved": {
			of(nil, ready, metav1.Condition{Type: hubv1.ConditionTopologyChanged, Status: metav1.ConditionTrue, Reason: hubv1.ReasonNodesMoved}), FindingWarning,
		},
		"ready by its earlier kubeconfig, as the new one is refused": {of(nil, ready, refused), FindingWarning},
		"ready, while a new kubeconfig is tried":                     {of(nil, ready, tried), FindingOK},
		"ready, and nobody observes it":                              {of(func(s *hubv1.MemberClusterStatus) { s.LastObservedTime = &before }, ready), FindingWarning},
		"ready, with a certificate that ends": {
			of(func(s *hubv1.MemberClusterStatus) { s.Credentials = &hubv1.CredentialsStatus{ExpireTime: &tomorrow} }, ready), FindingWarning,
		},
		"ready, with a token that is renewed": {of(func(s *hubv1.MemberClusterStatus) {
			s.Credentials = &hubv1.CredentialsStatus{ExpireTime: &tomorrow, TokenSecret: &hubv1.TokenSecret{}}
		}, ready), FindingOK},
	} {
		if got := CheckMember(tc.member, now); got.Result != tc.want {
			t.Errorf("%s: %+v, want %s", name, got, tc.want)
		}
	}
}

func TestAKubeconfigThatDoesNotWorkIsAProblemOfAReadyCluster(t *testing.T) {
	t.Parallel()
	cluster := func(name string, conditions ...metav1.Condition) hubv1.MemberCluster {
		return hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: hubv1.MemberClusterStatus{Conditions: conditions}}
	}
	ready := metav1.Condition{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: hubv1.ReasonConnected}
	lost := metav1.Condition{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnauthorized}
	credentials := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: hubv1.ConditionCredentialsValid, Status: status, Reason: reason}
	}
	found := NewGatherer([]hubv1.MemberCluster{
		cluster("well", ready, credentials(metav1.ConditionTrue, hubv1.ReasonCredentialsTaken)),
		cluster("trying", ready, credentials(metav1.ConditionUnknown, hubv1.ReasonConnecting)),
		cluster("before", ready, credentials(metav1.ConditionUnknown, hubv1.ReasonCertificateUnknown)),
		cluster("lost", lost, credentials(metav1.ConditionFalse, hubv1.ReasonUnauthorized)),
	}).ofClusters
	var got []string
	for _, p := range found {
		got = append(got, p.Of+" "+p.Reason)
	}
	want := []string{"MemberCluster before CertificateUnknown", "MemberCluster lost Unauthorized"}
	if !slices.Equal(got, want) {
		t.Errorf("problems %v, want %v", got, want)
	}
}

func TestAnObjectThatTheHubCannotReadIsAProblem(t *testing.T) {
	t.Parallel()
	binding := func(name, reason string) *hubv1.ResourceBinding {
		b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}, Spec: hubv1.BindingSpec{ObjectRef: hubv1.ObjectReference{Kind: "ConfigMap", Name: name}}}
		b.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionScheduled, Status: metav1.ConditionUnknown, Reason: reason}}
		return b
	}
	g := NewGatherer(nil)
	g.Add(binding("lost", hubv1.ReasonTemplateMissing))
	g.Add(binding("waits", hubv1.ReasonKindNotServed))
	if len(g.ofObjects) != 1 || g.ofObjects[0].Of != "ConfigMap shop/lost" || g.ofObjects[0].Reason != hubv1.ReasonTemplateMissing {
		t.Errorf("problems %+v, want the lost object alone", g.ofObjects)
	}
}

func TestObjectsThatWaitForFinalizersAreProblems(t *testing.T) {
	g := NewGatherer(nil)
	since := metav1.Now()
	hanging := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "argoproj.io/v1alpha1", Kind: "Application"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "shop", DeletionTimestamp: &since, Finalizers: []string{"resources-finalizer.argocd.argoproj.io"}},
	}
	g.AddDeleting(hanging)
	g.AddDeleting(&metav1.PartialObjectMetadata{TypeMeta: hanging.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: "gone", DeletionTimestamp: &since}})
	found := g.Worst(10).OfObjects
	if len(found) != 1 || found[0].Of != "Application.argoproj.io argocd/shop" || found[0].Reason != hubv1.ReasonFinalizersRemain ||
		!strings.Contains(found[0].Message, "resources-finalizer.argocd.argoproj.io") {
		t.Errorf("%+v", found)
	}
}

func TestPlacementsThatAreNotAcceptedFailACheck(t *testing.T) {
	t.Parallel()
	condition := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: hubv1.ConditionAccepted, Status: status, Reason: hubv1.ReasonNotFederated, Message: "the hub may not list and watch Secret"}}
	}
	var u Unaccepted
	u.Add("Placement shop/new", nil)
	u.Add("Placement shop/good", condition(metav1.ConditionTrue))
	if got := u.Checks(); len(got) != 1 || got[0].Result != FindingOK {
		t.Errorf("got %+v", got)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		u.Add("Placement shop/"+name, condition(metav1.ConditionFalse))
	}
	const each = ": NotFederated: the hub may not list and watch Secret; "
	want := []Check{{Name: "placements", Result: FindingFailed, Message: "Placement shop/a" + each + "Placement shop/b" + each + "Placement shop/c" + each + "and 1 more"}}
	if diff := cmp.Diff(want, u.Checks()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := (Lacks{}).Checks(&u); len(got) != 1 || got[0].Result != FindingUnknown || !strings.Contains(got[0].Message, "the objects of 4 placements are not sent yet") {
		t.Errorf("grants beside placements that are not accepted: %+v", got)
	}
	if got := (Lacks{}).Checks(&Unaccepted{}); len(got) != 1 || got[0].Result != FindingOK {
		t.Errorf("grants without such placements: %+v", got)
	}
}
