package overrides

import (
	"encoding/json"
	"errors"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestPatchesAgreeWithJSONPatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := drawObject(t, 3)
		rule := hubv1.OverrideRule{Name: "r"}
		for range rapid.IntRange(1, 3).Draw(t, "operations") {
			rule.Patches = append(rule.Patches, drawOperation(t, spec))
		}
		before := map[string]any{"spec": spec}
		want, wantErr := libraryPatch(t, before, rule.Patches)
		got, gotErr := ourChange(t, before, &rule)
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("%s\non %s\ngot error %v, want %v", raw(rule.Patches).Raw, raw(before).Raw, gotErr, wantErr)
		}
		if diff := cmp.Diff(want, got); diff != "" && gotErr == nil {
			t.Fatalf("%s\non %s\n-want +got:\n%s", raw(rule.Patches).Raw, raw(before).Raw, diff)
		}
	})
}

func TestMergePatchesAgreeWithJSONPatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := map[string]any{"spec": drawObject(t, 3)}
		patch := raw(map[string]any{"spec": drawMerge(t, 3)})
		out, err := jsonpatch.MergePatch(raw(before).Raw, patch.Raw)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		decodeInto(t, out, &want)
		got, gotErr := ourChange(t, before, &hubv1.OverrideRule{Name: "r", MergePatch: patch})
		if gotErr != nil {
			t.Fatal(gotErr)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s on %s, -want +got:\n%s", patch.Raw, raw(before).Raw, diff)
		}
	})
}

func libraryPatch(t *rapid.T, before map[string]any, ops []hubv1.PatchOperation) (map[string]any, error) {
	patch, err := jsonpatch.DecodePatch(raw(ops).Raw)
	if err != nil {
		t.Fatal(err)
	}
	opts := jsonpatch.NewApplyOptions()
	opts.SupportNegativeIndices = false
	out, err := patch.ApplyWithOptions(raw(before).Raw, opts)
	if err != nil {
		return nil, err
	}
	var want map[string]any
	decodeInto(t, out, &want)
	return want, nil
}

func ourChange(t *rapid.T, before map[string]any, rule *hubv1.OverrideRule) (map[string]any, error) {
	c, faults := compile(rule)
	if len(faults) > 0 {
		return nil, faults[0].of(RuleRef{})
	}
	doc := runtime.DeepCopyJSON(before)
	if f := c.apply(doc, newBudget()); f != nil {
		return nil, f.of(RuleRef{})
	}
	var got map[string]any // numbers such as 1e21 and 1.0 as they are decoded
	decodeInto(t, raw(doc).Raw, &got)
	return got, nil
}

func decodeInto(t *rapid.T, data []byte, into any) {
	if err := utiljson.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

func TestOrderOfPoliciesChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := drawTemplate(t)
		var policies []hubv1.OverridePolicyObject
		for _, name := range []string{"a", "b", "c", "d"} {
			policies = append(policies, policyWith(name, drawRule(t, "one", template.Object["spec"]), drawRule(t, "two", template.Object["spec"])))
		}
		policies = append(policies, clusterPolicyWith("a", hubv1.TierAdmin, drawRule(t, "admin", template.Object["spec"])))
		before := raw([]any{template, policies}).Raw

		want, wantErr := render(template, Cluster{}, policies)
		got, gotErr := render(template, Cluster{}, rapid.Permutation(policies).Draw(t, "order"))
		if diff := cmp.Diff([]any{want, message(wantErr)}, []any{got, message(gotErr)}); diff != "" {
			t.Fatalf("-one order +another:\n%s", diff)
		}
		if after := raw([]any{template, policies}).Raw; string(before) != string(after) {
			t.Fatalf("Render has changed its input from\n%s\nto\n%s", before, after)
		}
	})
}

// If two policies have no conflict, the object must be the same for both orders of their names. The test ignores
// policies that give an error in one of the orders.
func TestNamesOfPoliciesWithoutConflictChangeNothing(t *testing.T) {
	agreed := 0
	rapid.Check(t, func(t *rapid.T) {
		template := drawTemplate(t)
		one := []hubv1.OverrideRule{drawRule(t, "one", template.Object["spec"]), drawRule(t, "two", template.Object["spec"])}
		other := []hubv1.OverrideRule{drawRule(t, "one", template.Object["spec"])}
		first, firstErr := renderWith(template, policyWith("a", one...), policyWith("b", other...))
		second, secondErr := renderWith(template, policyWith("b", one...), policyWith("a", other...))
		if isConflict(firstErr) != isConflict(secondErr) && !isInvalid(firstErr) && !isInvalid(secondErr) {
			t.Fatalf("errors %v and %v", firstErr, secondErr)
		}
		if firstErr != nil || secondErr != nil {
			return
		}
		agreed++
		if diff := cmp.Diff(first.Object, second.Object); diff != "" {
			t.Fatalf("%s\n%s\n%s\n-one first +the other first:\n%s", raw(template).Raw, raw(one).Raw, raw(other).Raw, diff)
		}
	})
	if agreed == 0 && !testing.Short() { // a short run draws too few pairs to be sure of one that agrees
		t.Error("no two policies without a conflict were drawn")
	}
	t.Logf("%d pairs of policies agreed", agreed)
}

func TestStrippingTwiceIsStrippingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := drawTemplate(t)
		template.SetAnnotations(rapid.MapOf(rapid.SampledFrom([]string{
			"a", "hanse.dev/x", "meta.helm.sh/x", "app.kubernetes.io/managed-by", "example.com/x",
		}), rapid.String()).Draw(t, "annotations"))
		once, err := renderWith(template)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := renderWith(once)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once.Object, twice.Object); diff != "" {
			t.Fatalf("-once +twice:\n%s", diff)
		}
	})
}

func renderWith(template *unstructured.Unstructured, policies ...hubv1.OverridePolicyObject) (*unstructured.Unstructured, error) {
	result, err := render(template, Cluster{}, policies)
	return result.Manifest, err
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func isConflict(err error) bool {
	var c *ConflictError
	return errors.As(err, &c)
}

func isInvalid(err error) bool {
	var i *InvalidError
	return errors.As(err, &i)
}

// throughBytes applies the operations with the library json-patch. It measures the cost of a Render with that library
// (see the package comment).
func throughBytes(template *unstructured.Unstructured, ops []hubv1.PatchOperation) error {
	text, err := json.Marshal(template.Object)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return err
	}
	if text, err = patch.Apply(text); err != nil {
		return err
	}
	var out map[string]any
	return utiljson.Unmarshal(text, &out)
}
