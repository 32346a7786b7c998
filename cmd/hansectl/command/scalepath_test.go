package command

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/hub/store/inputs"
)

const scalable = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.hanse.dev}
spec:
  group: test.hanse.dev
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestTheScalePathOfAKindIsReadFromItsDefinition(t *testing.T) {
	fresh(t)
	definition := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(scalable), &definition.Object))
	apply(t, onHub, definition)
	widget := schema.GroupKind{Group: "test.hanse.dev", Kind: "Widget"}
	pathOf := func(ctx context.Context, kind schema.GroupKind) (string, error) {
		d, err := inputs.Definition(ctx, onHub, kind)
		return inputs.ScalePath(d), err
	}
	var path string
	var err error
	if wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		path, err = pathOf(ctx, widget) // an error until the kind is served
		return err == nil, nil
	}) != nil || path != ".spec.size" {
		t.Errorf("a Widget has the scale path %q, %v", path, err)
	}
	if path, err := pathOf(t.Context(), schema.GroupKind{Kind: "ConfigMap"}); path != "" || err != nil {
		t.Errorf("a ConfigMap has the scale path %q, %v", path, err)
	}
}
