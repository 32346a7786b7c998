package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

func TestAdoptShowsWhatWouldChangeBeforeItTakesOver(t *testing.T) {
	fresh(t)
	aHubRan(t, time.Now())
	_, binding := settings(t)
	for _, name := range []string{"eu-fra-1", "us-1"} {
		binding.Spec.Clusters = append(binding.Spec.Clusters, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	apply(t, onHub, binding)
	binding.Status.Clusters = []hubv1.ClusterRow{{
		Name: "us-1", UID: "copy", Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied,
		Health: hubv1.HealthHealthy, LastTransitionTime: ptr.To(metav1.Now()),
	}}
	must(t, onHub.Status().Update(t.Context(), binding))
	states := map[string]wire.AdoptAnswer{
		"ap-se-1":  {State: wire.AdoptPossible, UID: "theirs"},
		"cn-sha-1": {State: wire.AdoptDiffers, Refused: &wire.Reason{Reason: hubv1.ReasonAlreadyExists, Message: "differs in .data.a"}},
		"eu-fra-1": {State: wire.AdoptMissing},
	}
	h := newPlayedHub(t, func(cluster, what string, body []byte) (any, error) {
		var in wire.AdoptRequest
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, err
		}
		state, known := states[cluster]
		switch {
		case !known || what != wire.Adopt || in.Object.Name != "settings":
			return nil, fmt.Errorf("%s is not connected", cluster)
		case in.UID != "" && (in.UID != "theirs" || state.State == wire.AdoptMissing):
			return nil, errors.New("it was not shown so")
		case in.UID != "":
			return wire.AdoptAnswer{State: wire.AdoptAdopted}, nil
		case in.Adoption == hubv1.AdoptionAlways && state.State == wire.AdoptDiffers:
			return wire.AdoptAnswer{State: wire.AdoptPossible, UID: "theirs", Changes: []string{".data.a", ".data.b", ".data.c", ".data.d"}}, nil
		}
		return state, nil
	})
	adopt := []string{"adopt", "cm/settings", "-n", "shop"}

	t.Run("a look changes nothing, and does not ask about clusters with a copy", func(t *testing.T) {
		out, err := h.hansectl(append(adopt, "--dry-run")...)
		refused(t, err, "1 object not taken over: column WHY has the reasons, and hansectl diff shows differences")
		exits(t, err, 1)
		wants(t, out, "CLUSTER    STATE       WHY", "ap-se-1    Adoptable   nothing would change",
			"cn-sha-1   Differs     AlreadyExists: differs in .data.a", "eu-fra-1   Missing     -", "us-1       Copy        -")
		if asked := h.took(); strings.Count(asked, " adopt") != 3 || strings.Contains(asked, "us-1") {
			t.Errorf("asked %s", asked)
		}
	})
	t.Run("nothing is done without a word of the user", func(t *testing.T) {
		_, err := h.hansectl(adopt...)
		refused(t, err, "pass --yes to confirm")
		if asked := h.took(); strings.Count(asked, "ap-se-1") != 1 {
			t.Errorf("asked %s", asked)
		}
	})
	t.Run("an object that would not change is taken over, as it was shown", func(t *testing.T) {
		out, err := h.hansectl(append(adopt, "--yes", "--cluster", "ap-se-1")...)
		must(t, err)
		wants(t, out, "ap-se-1   Adoptable   nothing would change", "ap-se-1   Adopted   -")
	})
	t.Run("one that differs is overwritten only if that is asked for", func(t *testing.T) {
		out, err := h.hansectl(append(adopt, "--yes", "--cluster", "cn-sha-1", "--overwrite")...)
		must(t, err)
		wants(t, out, "Adoptable   would change .data.a, .data.b, .data.c and 1 more", "cn-sha-1   Adopted")
	})
	t.Run("as JSON it says the end", func(t *testing.T) {
		out, err := h.hansectl(append(adopt, "--yes", "--cluster", "ap-se-1", "-o", "json")...)
		must(t, err)
		var shown view.Adoption
		must(t, json.Unmarshal([]byte(out), &shown))
		if len(shown.Clusters) != 1 || shown.Clusters[0].State != wire.AdoptAdopted {
			t.Errorf("got %s", out)
		}
		_, err = h.hansectl(append(adopt, "-o", "json")...)
		refused(t, err, "--output needs --dry-run or --yes")
		exits(t, err, 2)
	})
	t.Run("a cluster that cannot be asked is an error", func(t *testing.T) {
		out, err := h.hansectl(append(adopt, "--dry-run", "--cluster", "us-1")...)
		refused(t, err, "1 cluster could not be asked")
		wants(t, out, "us-1      Unknown   us-1 is not connected")
	})
	t.Run("a cluster to which the object does not go is named", func(t *testing.T) {
		_, err := h.hansectl(append(adopt, "--cluster", "nowhere")...)
		refused(t, err, "does not go to nowhere")
	})
	t.Run("an object that the hub does not have is no object without clusters", func(t *testing.T) {
		for _, command := range []string{"adopt", "diff"} {
			_, err := h.hansectl(command, "cm/none", "-n", "shop")
			refused(t, err, "the hub has no ConfigMap shop/none")
		}
	})
}
