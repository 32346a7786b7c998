package templates

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
)

func TestAKindThatCannotBeReadIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var lines []string
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	broken, other := schema.GroupKind{Group: "odd.example.com", Kind: "Broken"}, schema.GroupKind{Kind: "Other"}
	failed := informer.State{Reason: hubv1.ReasonServerError, Message: "conversion webhook failed"}
	var u unreadable
	u.log(ctx, broken, informer.State{Reason: hubv1.ReasonKindNotServed}) // its definition is not installed yet
	for range 3 {
		u.log(ctx, broken, failed)
		u.log(ctx, broken, informer.State{Reason: hubv1.ReasonThrottled})
		u.log(ctx, broken, informer.State{})
	}
	u.log(ctx, other, failed)
	if len(lines) != 2 || !strings.Contains(lines[0], "conversion webhook failed") || !strings.Contains(lines[0], broken.String()) || !strings.Contains(lines[1], other.String()) {
		t.Errorf("the log has %q, want one line for each kind", lines)
	}
	if u.isNew(broken, time.Now()) || !u.isNew(broken, time.Now().Add(logEvery)) {
		t.Error("a failure is not logged again after an hour")
	}
}

func TestWantedKindsOfAGroup(t *testing.T) {
	t.Parallel()
	a, b, other := schema.GroupKind{Group: "x", Kind: "A"}, schema.GroupKind{Group: "x", Kind: "B"}, schema.GroupKind{Group: "y", Kind: "C"}
	s := &Store{wanted: sets.New(b, other, a)}
	if diff := cmp.Diff([]schema.GroupKind{a, b}, s.Wanted("x")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The kind has two versions, of which the one that the hub prefers needs a webhook that does not answer.
func TestAKindWhoseConversionWebhookIsAway(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	const group = "odd.example.com"
	crd := define(t, c, group)
	broken := crd.DeepCopy()
	url := "https://127.0.0.1:1/convert"
	broken.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url},
		},
	}
	broken.Spec.Versions[0].Storage, broken.Spec.Versions[1].Storage = false, true // objects are stored at v1beta1, and read at v1
	if err := c.Patch(t.Context(), broken, client.MergeFrom(crd)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an object is stored at the other version", func(ctx context.Context) error {
		one := widget(group, "one")
		one.SetAPIVersion(group + "/v1beta1")
		return client.IgnoreAlreadyExists(c.Create(ctx, one))
	})
	s := newStore(t, c)
	gk := schema.GroupKind{Group: group, Kind: "Widget"}
	s.Want(sets.New(gk))
	start(t, s)
	eventually(t, "the kind cannot be read", func(context.Context) error {
		if state, _ := s.State(gk); state.Reason == "" || state.Reason == hubv1.ReasonKindNotServed {
			return fmt.Errorf("its state is %+v", state)
		}
		return nil
	})
	eventually(t, "the failure is logged", func(context.Context) error {
		s.unreadable.mu.Lock()
		defer s.unreadable.mu.Unlock()
		if s.unreadable.logged[gk].IsZero() {
			return errors.New("it is not")
		}
		return nil
	})
	metrics := make(chan prometheus.Metric, 100)
	collector{s}.Collect(metrics)
	close(metrics)
	series := 0
	for m := range metrics {
		if m.Desc() == unreadableDesc {
			series++
		}
	}
	if series != 1 {
		t.Errorf("the metric has %d series, want 1", series)
	}
}
