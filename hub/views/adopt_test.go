package views_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

func TestAdoptNeedsItsVerbAndTheRightToChangeTheHubObject(t *testing.T) {
	w := newWorld(t)
	w.intent = func(hubv1.ObjectIdentity, []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error) {
		return member.ApplyIntent{Manifest: configMap("blue")}, nil, nil
	}
	theirs := configMap("red")
	theirs.SetUID("theirs")
	for _, m := range w.members {
		m.preview = member.Preview{Before: theirs, After: configMap("blue"), Unadopted: true}
	}
	w.adopts = member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, CopyState: member.CopyState{Adopted: true}}
	update := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"update"}}}
	look := wire.AdoptRequest{Object: w.object("ConfigMap", "settings"), Adoption: hubv1.AdoptionIfNoDiff}
	take := look
	take.UID = "theirs"
	tests := map[string]struct {
		rights, onMembers []rbacv1.PolicyRule
		cluster           string
		looks, takes      string // part of the refusal of a look and of an adoption; empty: allowed
	}{
		"all rights": {slices.Concat(getAll, update), slices.Concat(viewAll, adoptHere), here, "", ""},
		"without adopt": {
			slices.Concat(getAll, update), viewAll, here, "needs the verb adopt", "needs the verb adopt",
		},
		"adopt on another member": {
			slices.Concat(getAll, update), slices.Concat(viewAll, adoptHere), hereToo, "needs the verb adopt", "needs the verb adopt",
		},
		"without update": {getAll, slices.Concat(viewAll, adoptHere), here, "", "needs the verb update"},
		"without get":    {update, slices.Concat(viewAll, adoptHere), here, "may not get", "may not get"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := w.user(strings.ReplaceAll(name, " ", "-"), tc.rights, tc.onMembers)
			for says, in := range map[*string]wire.AdoptRequest{&tc.looks: look, &tc.takes: take} {
				w.adopted = nil
				var answer wire.AdoptAnswer
				err := w.ask(token, tc.cluster, wire.Adopt, in, &answer)
				if *says != "" {
					if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), *says) || w.adopted != nil {
						t.Errorf("got %v, adopted %v", err, w.adopted)
					}
					continue
				}
				must(t, err)
				if in.UID == "" {
					want := wire.AdoptAnswer{State: wire.AdoptPossible, UID: "theirs", Changes: []string{".data.colour"}}
					if diff := cmp.Diff(want, answer); diff != "" || w.adopted != nil {
						t.Errorf("adopted %v: %s", w.adopted, diff)
					}
				} else if answer.State != wire.AdoptAdopted || !slices.Equal(w.adopted, []string{"settings on cn-sha-1: IfNoDiff of theirs"}) {
					t.Errorf("got %+v, adopted %v", answer, w.adopted)
				}
			}
		})
	}
}

func TestAdoptSaysWhoseTheObjectIs(t *testing.T) {
	w := newWorld(t)
	var stop *member.Outcome
	w.intent = func(hubv1.ObjectIdentity, []hubv1.OverridePolicyObject) (member.ApplyIntent, *member.Outcome, error) {
		return member.ApplyIntent{Manifest: configMap("blue")}, stop, nil
	}
	token := w.user("adopter", getAll, slices.Concat(viewAll, adoptHere))
	suspended, differs := &member.Outcome{Reason: hubv1.ReasonSuspended}, &member.Outcome{Reason: hubv1.ReasonAlreadyExists, Message: "in .data"}
	red, blue := configMap("red"), configMap("blue")
	red.SetUID("theirs")
	tests := map[string]struct {
		preview member.Preview
		stop    *member.Outcome
		want    wire.AdoptAnswer
	}{
		"a copy": {member.Preview{Before: red, After: blue, Refused: differs}, nil, wire.AdoptAnswer{State: wire.AdoptCopy}},
		"none":   {member.Preview{After: blue}, nil, wire.AdoptAnswer{State: wire.AdoptMissing}},
		"the copy of another hub": {
			member.Preview{Refused: &member.Outcome{Reason: hubv1.ReasonOwnedByOther}}, nil,
			wire.AdoptAnswer{State: wire.AdoptRefused, Refused: &wire.Reason{Reason: hubv1.ReasonOwnedByOther}},
		},
		"one that differs": {member.Preview{Before: red, After: blue, Unadopted: true, Refused: differs}, nil, wire.AdoptAnswer{
			State: wire.AdoptDiffers, Changes: []string{".data.colour"},
			Refused: &wire.Reason{Reason: hubv1.ReasonAlreadyExists, Message: "in .data"},
		}},
		"one that is as wanted, while writes are suspended": {
			member.Preview{Before: red, After: red, Unadopted: true}, suspended,
			wire.AdoptAnswer{State: wire.AdoptRefused, Refused: &wire.Reason{Reason: hubv1.ReasonSuspended}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w.members[here].preview, stop = tc.preview, tc.stop
			var got wire.AdoptAnswer
			in := wire.AdoptRequest{Object: w.object("ConfigMap", "settings"), Adoption: hubv1.AdoptionIfNoDiff}
			must(t, w.ask(token, here, wire.Adopt, in, &got))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("paths of a Secret are not told", func(t *testing.T) {
		before, after := secret(map[string]any{"a": "b25l"}), secret(map[string]any{"a": "dHdv"})
		before.SetUID("theirs")
		w.members[here].preview, stop = member.Preview{Before: before, After: after, Unadopted: true}, nil
		var got wire.AdoptAnswer
		in := wire.AdoptRequest{Object: w.object("Secret", "password"), Adoption: hubv1.AdoptionAlways}
		must(t, w.ask(token, here, wire.Adopt, in, &got))
		if diff := cmp.Diff(wire.AdoptAnswer{State: wire.AdoptPossible, UID: "theirs"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an unknown way to adopt is refused", func(t *testing.T) {
		in := wire.AdoptRequest{Object: w.object("ConfigMap", "settings"), Adoption: hubv1.AdoptionNever}
		if err := w.ask(token, here, wire.Adopt, in, nil); !apierrors.IsBadRequest(err) {
			t.Errorf("got %v", err)
		}
	})
}
