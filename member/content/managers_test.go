package content_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanse-dev/hanse/member/content"
)

func TestManagers(t *testing.T) {
	const manifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {app: web, "a/b": x}}, spec: {replicas: 3, template: {spec: {containers: [
	  {name: a, image: "a:1", args: [x]}, {name: b, image: "b:1"}]}}}}`
	tests := map[string]struct {
		pointer string
		want    []string
	}{
		"a field of the hub": {"/spec/paused", []string{"hanse"}},
		"a field of others, by the scale subresource as well": {"/spec/replicas", []string{"kube-controller-manager", "kubectl"}},
		"an item in another place in the live object":         {"/spec/template/spec/containers/0/image", []string{"hanse", "kubectl"}},
		"an item that nobody else has":                        {"/spec/template/spec/containers/1/image", []string{"hanse"}},
		"a part of a list that is one value":                  {"/spec/template/spec/containers/0/args/0", []string{"hanse"}},
		"a part of a map that is one value":                   {"/spec/strategy/type", []string{"kubectl"}},
		"a map that several have parts of":                    {"/metadata/labels", []string{"hanse", "kubectl"}},
		"a label of the hub":                                  {"/metadata/labels/app", []string{"hanse"}},
		"what nobody has":                                     {"/spec/minReadySeconds", nil},
		"what is nowhere":                                     {"/spec/nothing/at/all", nil},
		"an item that is nowhere":                             {"/spec/template/spec/containers/7/image", nil},
		"an item to be appended":                              {"/spec/template/spec/containers/-", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, content.Managers(object(t, shared), object(t, manifest), tc.pointer)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
