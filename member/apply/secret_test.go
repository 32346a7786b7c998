package apply_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

func (w *world) secret(password string) *unstructured.Unstructured {
	return object(secret, w.ns, "web", map[string]any{"data": map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(password))}})
}

func (w *world) editSecret(password string) {
	w.Helper()
	patch := `{"stringData":{"password":"` + password + `"}}`
	_, err := w.objects(secret, w.ns).Patch(w.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		w.Fatal(err)
	}
}

func TestTheContentHashOfASecretIsKeyed(t *testing.T) {
	w := newWorld(t)
	out := w.apply(w.intentOf(w.secret("a"), "d1"), written)
	live, err := w.objects(secret, w.ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if hash, _ := content.Hash(key, live); hash != out.Hash {
		t.Errorf("%s, and of the object that was read it is %s", out.Hash, hash)
	}
	if guessed, _ := content.Hash(nil, live); guessed == out.Hash {
		t.Error("whoever guesses the values can compute it")
	}
	in := w.intentOf(w.secret("a"), "d1")
	in.Confirmed = out.Hash
	w.apply(in, unchanged)
}

// A user who writes the hub object could try values: the outcome must be the same for the correct value as for a wrong
// one.
func TestAGuessedValueOfASecretIsNotConfirmed(t *testing.T) {
	tests := map[string]struct {
		before func(w *world) (confirmed string)
		adjust func(*member.ApplyIntent)
		want   result
	}{
		"of a member's own Secret, by ReportOnly": {
			before: func(w *world) string { w.create(w.secret("theirs")); return "" },
			adjust: func(in *member.ApplyIntent) { in.Mode, in.Adoption = hubv1.ApplyReportOnly, hubv1.AdoptionAlways },
			want:   failed(hubv1.ReasonDiffers, member.RetrySlowly),
		},
		"of a member's own Secret, by IfNoDiff": {
			before: func(w *world) string { w.create(w.secret("theirs")); return "" },
			adjust: func(in *member.ApplyIntent) { in.Adoption = hubv1.AdoptionIfNoDiff },
			want:   failed(hubv1.ReasonAlreadyExists, member.RetrySlowly),
		},
		"of a copy that was changed on the member, by ReportOnly": {
			before: func(w *world) string { return w.changed() },
			adjust: func(in *member.ApplyIntent) { in.Mode = hubv1.ApplyReportOnly },
			want:   failed(hubv1.ReasonDiffers, member.RetrySlowly),
		},
		"of a copy that was changed on the member, by field conflicts": {
			before: func(w *world) string { return w.changed() },
			adjust: func(in *member.ApplyIntent) { in.FieldConflict = hubv1.FieldConflictReport },
			want:   failed(hubv1.ReasonFieldConflict, member.RetrySlowly),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			confirmed := tc.before(w)
			w.noWrites()
			answer := func(guess string) member.Outcome {
				in := w.intentOf(w.secret(guess), "digest of "+guess)
				in.Confirmed = confirmed
				tc.adjust(&in)
				return w.apply(in, tc.want)
			}
			wrong, right := answer("wrong"), answer("theirs")
			if diff := cmp.Diff(wrong, right); diff != "" {
				t.Errorf("the right guess differs (-wrong +right): %s", diff)
			}
			if strings.Contains(right.Message, "password") {
				t.Errorf("it names a key: %s", right.Message)
			}
		})
	}
}

// changed creates a copy in which another client on the member has replaced the value. It returns the hash that the hub
// confirmed before.
func (w *world) changed() (confirmed string) {
	w.Helper()
	out := w.apply(w.intentOf(w.secret("ours"), "d1"), written)
	w.editSecret("theirs")
	return out.Hash
}

func TestASecretThatWasChangedOnTheMemberIsPutBack(t *testing.T) {
	w := newWorld(t)
	in := w.intentOf(w.secret("ours"), "d1")
	in.Confirmed = w.changed()
	out := w.apply(in, written)
	if diff := cmp.Diff([]member.FieldDrift{{Path: ".data", Manager: content.UnknownManager}}, out.Drifted); diff != "" {
		t.Error(diff)
	}
}

func TestReportOnlySaysOfASecretWhetherItWouldBeWritten(t *testing.T) {
	w := newWorld(t)
	report := func(value, digest, confirmed string, want result) {
		t.Helper()
		in := w.intentOf(w.secret(value), digest)
		in.Mode, in.Confirmed = hubv1.ApplyReportOnly, confirmed
		w.apply(in, want)
	}
	report("ours", "d1", "", failed(hubv1.ReasonMissing, member.RetrySlowly))
	out := w.apply(w.intentOf(w.secret("ours"), "d1"), written)
	w.noWrites()
	report("ours", "d1", out.Hash, result{metav1.ConditionTrue, hubv1.ReasonInSync, false, member.RetrySlowly})
	report("other", "d2", out.Hash, failed(hubv1.ReasonDiffers, member.RetrySlowly))
}
