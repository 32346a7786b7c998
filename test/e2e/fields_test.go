package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// prompt is the longest time until an event must have its effect. It is far shorter than any retry interval, so that a
// retry cannot be the cause.
const prompt = 12 * time.Second

// olderCRD removes fields from a member's Widget CRD until the test ends, and waits until the member publishes the new
// schema.
func olderCRD(t *testing.T, member string, without ...string) {
	t.Helper()
	t.Cleanup(func() { restoreCRD(t, member) })
	raw, err := os.ReadFile("testdata/widget-crd.yaml")
	must(t, err)
	lines := strings.Split(string(raw), "\n")
	kept := lines[:0]
	for _, line := range lines {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if !contains(" "+strings.Join(without, " ")+" ", " "+name+" ") {
			kept = append(kept, line)
		}
	}
	crd := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(strings.Join(kept, "\n")), &crd.Object))
	c := suite.Members[member]
	must(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("e2e"), client.ForceOwnership))
	eventually(t, normal, func() error {
		document, err := rawGet(t.Context(), member, "/openapi/v3/apis/test.hanse.dev/v1")
		for _, field := range without {
			if err == nil && contains(document, `"`+field+`":{`) {
				err = fmt.Errorf("%s still publishes field %s", member, field)
			}
		}
		return err
	})
}

// noteOn returns nil if the copy on the member has this spec.note.
func noteOn(ctx context.Context, member string, obj *unstructured.Unstructured, want string) error {
	copied, err := on(ctx, member, obj)
	if err != nil {
		return fmt.Errorf("on %s: %w", member, err)
	}
	if got, _, _ := unstructured.NestedString(copied.Object, "spec", "note"); got != want {
		return fmt.Errorf("on %s: spec.note is %q, want %q", member, got, want)
	}
	return nil
}

// rowSays returns nil if the message of the object's row for the cluster contains the text.
func rowSays(ctx context.Context, obj *unstructured.Unstructured, cluster, text string) error {
	b, err := bindingOf(ctx, obj)
	if err != nil {
		return err
	}
	if row := b.BindingStatus().Row(cluster); row == nil || !contains(row.Message, text) {
		return fmt.Errorf("row of %s on %s is %+v, want a message with %q", obj.GetName(), cluster, row, text)
	}
	return nil
}

// notSays returns nil if the message of the object's row for the cluster does not contain the text.
func notSays(ctx context.Context, obj *unstructured.Unstructured, cluster, text string) error {
	if rowSays(ctx, obj, cluster, text) == nil {
		return fmt.Errorf("the row of %s on %s still says %q", obj.GetName(), cluster, text)
	}
	return nil
}

func TestAnOlderDefinitionOnOneMemberKeepsTheOldCopyUntilItIsUpgraded(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w := widget(ns, "unfitting")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
	}
	olderCRD(t, singapore, "note", "tags")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5,"note":"new","tags":["a"]}}`))
	must(t, suite.Hub.Patch(ctx, w, patch))
	for _, m := range []string{shanghai, frankfurt} {
		eventually(t, normal, func() error { return noteOn(ctx, m, w, "new") })
		eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
	}
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionFalse, hubv1.ReasonFieldsNotServed) })
	// Until the hub has read the older schema, the row quotes the member's response about the first field.
	eventually(t, normal, func() error { return rowSays(ctx, w, singapore, ".spec.note, .spec.tags") })
	must(t, replicasOn(ctx, singapore, w, 3))

	restoreCRD(t, singapore)
	eventually(t, prompt, func() error { return noteOn(ctx, singapore, w, "new") })
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
	must(t, replicasOn(ctx, singapore, w, 5))
}

func TestFieldsThatAMemberLacksAreDroppedIfAskedForAndComeWithItsUpgrade(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	olderCRD(t, singapore, "note")
	w := widget(ns, "cut")
	must(t, unstructured.SetNestedField(w.Object, "new", "spec", "note"))
	place(t, ns, "dropping", hubv1.ResourceSelector{APIGroup: widgetKind.Group, Kind: widgetKind.Kind}, hubv1.PlacementSpec{
		Clusters: everyCluster(), Apply: hubv1.ApplyPolicy{UnknownFields: hubv1.UnknownFieldsDrop},
	})
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return noteOn(ctx, shanghai, w, "new") })
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, w, 3) })
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
	eventually(t, normal, func() error { return rowSays(ctx, w, singapore, ".spec.note") })
	must(t, noteOn(ctx, singapore, w, ""))

	restoreCRD(t, singapore)
	eventually(t, prompt, func() error { return noteOn(ctx, singapore, w, "new") })
	eventually(t, normal, func() error { return notSays(ctx, w, singapore, "without what") })
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
}

func TestAFieldThatNoBuiltInKindHasIsNotDroppedSilently(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	cm := configMap(ns, "odd")
	place(t, ns, "configmaps", hubv1.ResourceSelector{Kind: "ConfigMap", Name: "odd"}, hubv1.PlacementSpec{Clusters: everyCluster()})
	p := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "odd"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: "odd"}}
	p.Spec.Rules = []hubv1.OverrideRule{unknownFieldRule("odd", "/odd", frankfurt)}
	must(t, suite.Hub.Create(ctx, p))
	must(t, suite.Hub.Create(ctx, cm))
	eventually(t, normal, func() error { return rowIs(ctx, cm, frankfurt, metav1.ConditionFalse, hubv1.ReasonFieldsNotServed) })
	eventually(t, normal, func() error { return rowSays(ctx, cm, frankfurt, ".odd") })
	must(t, goneFrom(ctx, frankfurt, cm))
	eventually(t, normal, func() error { return rowIs(ctx, cm, shanghai, metav1.ConditionTrue, "") })

	must(t, suite.Hub.Delete(ctx, p))
	eventually(t, normal, func() error { return rowIs(ctx, cm, frankfurt, metav1.ConditionTrue, "") })
}

func TestADefinitionThatGoesAndComesBackIsNoticedAtOnce(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	w, cm := widget(ns, "homeless"), configMap(ns, "neighbour")
	placeWidgets(t, ns)
	place(t, ns, "configmaps", hubv1.ResourceSelector{Kind: "ConfigMap", Name: "neighbour"}, hubv1.PlacementSpec{Clusters: everyCluster()})
	must(t, suite.Hub.Create(ctx, w))
	for _, m := range members {
		eventually(t, normal, func() error { return rowIs(ctx, w, m, metav1.ConditionTrue, "") })
		eventually(t, normal, func() error { return notSays(ctx, w, m, "has not shown it") })
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.test.hanse.dev"}}
	must(t, suite.Members[shanghai].Delete(ctx, crd))
	t.Cleanup(func() { restoreCRD(t, shanghai) })
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonKindNotServed) })
	must(t, suite.Hub.Create(ctx, cm))
	eventually(t, prompt, func() error { return rowIs(ctx, cm, shanghai, metav1.ConditionTrue, "") })
	must(t, replicasOn(ctx, singapore, w, 3))
	late := widget(ns, "latecomer")
	eventually(t, normal, func() error { return serves(ctx, shanghai, "") })
	must(t, suite.Hub.Create(ctx, late))
	eventually(t, normal, func() error {
		return rejectedFor(ctx, late, shanghai, hubv1.ReasonKindNotServed, "the cluster does not serve Widget.test.hanse.dev")
	})
	// The test first waits until the member has got no request for 6 s, because the hub repeats its discovery after a
	// change of the CRD. A hub that polls would send a request at most 9 s later, at the end of the first retry interval
	// of the Widget watch.
	eventually(t, 2*normal, func() error { return unasked(shanghai, "/apis/test.hanse.dev", 6*time.Second) })
	asked, err := requestsFor(shanghai, "/apis/test.hanse.dev")
	must(t, err)
	rested := time.Now()
	eventually(t, normal, func() error {
		now, err := requestsFor(shanghai, "/apis/test.hanse.dev")
		must(t, err)
		if more := now[len(asked):]; len(more) > 0 {
			t.Fatalf("the member was asked for a kind whose definition is awaited: %v", more)
		}
		if time.Since(rested) < 9*time.Second {
			return errors.New("the time is not over")
		}
		return nil
	})

	restoreCRD(t, shanghai)
	for _, obj := range []*unstructured.Unstructured{w, late} {
		eventually(t, prompt, func() error { return replicasOn(ctx, shanghai, obj, 3) })
		eventually(t, prompt, func() error { return rowIs(ctx, obj, shanghai, metav1.ConditionTrue, "") })
	}
}

// unknownFieldRule returns a rule that sets a field which no kind has.
func unknownFieldRule(name, path, cluster string) hubv1.OverrideRule {
	return hubv1.OverrideRule{
		Name: name, Clusters: &hubv1.RuleClusters{Names: []string{cluster}},
		Patches: []hubv1.PatchOperation{{Op: hubv1.PatchAdd, Path: path, Value: &apiextensionsv1.JSON{Raw: []byte(`"x"`)}}},
	}
}

// rawGet returns the response of a member's API server to a GET of the path.
func rawGet(ctx context.Context, member, path string) (string, error) {
	c, err := discovery.NewDiscoveryClientForConfig(suite.Members[member].Config)
	if err != nil {
		return "", err
	}
	raw, err := c.RESTClient().Get().AbsPath(path).DoRaw(ctx)
	return string(raw), err
}

// requestsFor returns the hub's requests to a member below a path, with the time of each response.
func requestsFor(member, path string) ([]string, error) {
	raw, err := os.ReadFile(suite.Members[member].AuditLog)
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(raw)) {
		if !strings.HasSuffix(line, "\n") {
			break // the API server is still writing the last line
		}
		var e struct{ Verb, RequestURI, StageTimestamp string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, err
		}
		if strings.HasPrefix(e.RequestURI, path) {
			out = append(out, e.StageTimestamp+" "+e.Verb+" "+e.RequestURI)
		}
	}
	return out, nil
}

// unasked returns nil if the hub has sent no request below the path to the member for the duration age.
func unasked(member, path string, age time.Duration) error {
	asked, err := requestsFor(member, path)
	if err != nil || len(asked) == 0 {
		return err
	}
	stamp, what, _ := strings.Cut(asked[len(asked)-1], " ")
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return fmt.Errorf("reading when %s was asked: %w", member, err)
	}
	if ago := time.Since(at); ago < age {
		return fmt.Errorf("%s was asked %s ago: %s", member, ago.Round(time.Millisecond), what)
	}
	return nil
}
