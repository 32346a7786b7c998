package dispatch

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/placement/decide"
)

// filledTemplate returns a template whose fields a server-side apply (Apply) or a create (Update) owns. The hub's API
// server has filled in spec.port.
func filledTemplate(operation string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "test.hanse.dev/v1", "kind": "Widget", "metadata": map[string]any{
			"name": "web", "namespace": object.Namespace,
			"managedFields": []any{map[string]any{"operation": operation, "fieldsV1": map[string]any{"f:spec": map[string]any{"f:size": map[string]any{}, "f:mode": map[string]any{}}}}},
		},
		"spec": map[string]any{"size": int64(1), "mode": "auto", "port": int64(30080)},
	}}
}

// withDefaults returns a schema in which the fields of the spec have these defaults, as JSON. A field with an empty
// default has none.
func withDefaults(t *testing.T, fields map[string]string) *openapi.Schema {
	t.Helper()
	properties := ""
	for name, value := range fields {
		if properties != "" {
			properties += ","
		}
		properties += fmt.Sprintf("%q:{", name)
		if value != "" {
			properties += `"default":` + value
		}
		properties += "}"
	}
	return withSpec(t, properties)
}

// withSpec returns a schema in which the spec has these properties, as JSON.
func withSpec(t *testing.T, properties string) *openapi.Schema {
	t.Helper()
	s, err := openapi.Parse(fmt.Appendf(nil, `{"components":{"schemas":{"w":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}},
		"x-kubernetes-group-version-kind":[{"group":"test.hanse.dev","version":"v1","kind":"Widget"}]}}}}`, properties), kind)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// schemaCluster is a member that publishes a schema.
type schemaCluster struct {
	fakeCluster
	schema *openapi.Schema
}

func (c *schemaCluster) Schema(context.Context, schema.GroupVersionKind) *openapi.Schema {
	return c.schema
}

func TestAMemberDoesNotGetADefaultThatItLacks(t *testing.T) {
	hub := map[string]string{"size": "1", "mode": `"auto"`, "port": ""}
	for name, tt := range map[string]struct {
		operation string
		member    map[string]string // nil: the member publishes no schema
		want      map[string]any
	}{
		"a member with the same defaults gets what a create has sent": {"Update", hub, map[string]any{"size": int64(1), "mode": "auto"}},
		"a member that lacks the field does not":                      {"Update", map[string]string{"size": "1", "port": ""}, map[string]any{"size": int64(1)}},
		"a member with another default does not":                      {"Update", map[string]string{"size": "2", "mode": `"auto"`, "port": ""}, map[string]any{"mode": "auto"}},
		"a member without a default does":                             {"Update", map[string]string{"size": "", "mode": "", "port": ""}, map[string]any{"size": int64(1), "mode": "auto"}},
		"a member gets what a user has applied":                       {"Apply", map[string]string{"size": "2", "port": ""}, map[string]any{"size": int64(1), "mode": "auto"}},
		"a member without a schema gets what a create has sent":       {"Update", nil, map[string]any{"size": int64(1), "mode": "auto"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &schemaCluster{}
			if tt.member != nil {
				c.schema = withDefaults(t, tt.member)
			}
			r := newRun(c, 0)
			r.queue.opts.Client = onePolicy{policy: &hubv1.OverridePolicy{}}
			onHub := withDefaults(t, hub)
			r.queue.opts.Schema = func(context.Context, schema.GroupVersionKind) *openapi.Schema { return onHub }
			template := filledTemplate(tt.operation)
			manifest, refusal, err := r.render(t.Context(), template, "v1")
			if err != nil || refusal != nil {
				t.Fatal(err, refusal)
			}
			if diff := cmp.Diff(tt.want, manifest.Object["spec"]); diff != "" {
				t.Errorf("the spec (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(template.Object["spec"], r.out.whole.Object["spec"]); diff != "" {
				t.Errorf("the whole spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMapOfDefaultsThatAMemberLacksIsLeftOutAsAWhole(t *testing.T) {
	onHub := withSpec(t, `"size":{},"probe":{"type":"object","default":{},"properties":{"mode":{"default":"auto"},"limits":{"type":"object","default":{},"properties":{"max":{"default":3}}}}}`)
	member := withSpec(t, `"size":{}`)
	for name, tt := range map[string]struct {
		mode string
		want map[string]any
	}{
		"all values are defaults": {"auto", map[string]any{"size": int64(1)}},
		"one value is no default": {"manual", map[string]any{"size": int64(1), "probe": map[string]any{"mode": "manual"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(&schemaCluster{schema: member}, 0)
			r.queue.opts.Client = onePolicy{policy: &hubv1.OverridePolicy{}}
			r.queue.opts.Schema = func(context.Context, schema.GroupVersionKind) *openapi.Schema { return onHub }
			template := filledTemplate("Update")
			template.Object["spec"] = map[string]any{"size": int64(1), "probe": map[string]any{"mode": tt.mode, "limits": map[string]any{"max": int64(3)}}}
			entry := template.Object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
			entry["fieldsV1"] = map[string]any{"f:spec": map[string]any{"f:size": map[string]any{}, "f:probe": map[string]any{
				".": map[string]any{}, "f:mode": map[string]any{}, "f:limits": map[string]any{".": map[string]any{}, "f:max": map[string]any{}},
			}}}
			manifest, refusal, err := r.render(t.Context(), template, "v1")
			if err != nil || refusal != nil {
				t.Fatal(err, refusal)
			}
			if diff := cmp.Diff(tt.want, manifest.Object["spec"]); diff != "" {
				t.Errorf("the spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACopyKeepsTheDigestOfAHubThatSentAllFields(t *testing.T) {
	r := newRun(&schemaCluster{}, 0)
	r.queue.opts.Client = onePolicy{policy: &hubv1.OverridePolicy{}}
	r.queue.opts.Schema = func(context.Context, schema.GroupVersionKind) *openapi.Schema { return nil }
	template := filledTemplate("Apply")
	bare := template.DeepCopy()
	unstructured.RemoveNestedField(bare.Object, "metadata", "managedFields")
	all, refusal, err := r.render(t.Context(), bare, "v1")
	if err != nil || refusal != nil {
		t.Fatal(err, refusal)
	}
	earlier := r.digest(all)
	manifest, refusal, err := r.render(t.Context(), template, "v1")
	if err != nil || refusal != nil {
		t.Fatal(err, refusal)
	}
	now := r.digest(manifest)
	if now == earlier {
		t.Fatal("the digest does not tell what is sent")
	}
	for confirmed, want := range map[string]string{"": now, now: now, earlier: earlier, "another": now} {
		if got := r.digestOf(t.Context(), manifest, confirmed); got != want {
			t.Errorf("after %q the digest is %q, want %q", confirmed, got, want)
		}
	}

	// The revision that the earlier hub has stored is the current one.
	digest := decide.TemplateDigest(r.queue.opts.Key, all, nil)
	if !r.isNewest(template, hubv1.ObjectRevision{Template: digest}) || !r.isNewest(template, hubv1.ObjectRevision{Template: decide.TemplateDigest(r.queue.opts.Key, manifest, nil)}) {
		t.Error("the template has not the content of its revision")
	}
	inputs := decide.Inputs{Template: manifest, Whole: template}
	live, _ := inputs.Digests(r.queue.opts.Key, nil)
	if got := inputs.Named(r.queue.opts.Key, nil, []hubv1.ObjectRevision{{Template: "older"}, {Template: digest}}, live); got != digest {
		t.Errorf("the revision is %s, want that of the earlier hub", got)
	}
	if got := inputs.Named(r.queue.opts.Key, nil, []hubv1.ObjectRevision{{Template: digest}, {Template: live}}, live); got != live {
		t.Errorf("the revision is %s, want the newer one", got)
	}
}
