package replicas

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/examples"
)

var update = flag.Bool("update", false, "write what is decided into docs/replicas.md and testdata/examples.md")

// exampleFiles are the files with examples, and the minimum number of examples in each. The guide shows what readers
// need. The file in testdata covers all other rules.
var exampleFiles = []examples.File{
	{Path: "../../docs/replicas.md", AtLeast: 12},
	{Path: "testdata/examples.md", AtLeast: 3},
}

// An example is a block of YAML, followed by a block of text with the division.
var exampleBlocks = regexp.MustCompile("```yaml\n([^`]*)```\n\n```text\n([^`]*)```")

type exampleCluster struct {
	Name   string            `json:"name"`
	Region string            `json:"region"`
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
	Pods   resource.Quantity `json:"pods"`
}

type example struct {
	Replicas hubv1.ReplicasPolicy `json:"replicas"`
	// Object contains the fields of the hub object that the division reads.
	Object map[string]any `json:"object"`
	// Held are the current shares.
	Held map[string]int64 `json:"held"`
	// Only names the chosen clusters. If it is unset, all clusters of the fleet are chosen.
	Only []string `json:"only"`
	// ScalePath is the path of the replicas in the scale subresource of the kind's definition.
	ScalePath string `json:"scalePath"`
}

func TestTheExamplesOfTheGuide(t *testing.T) {
	examples.Run(t, *update, exampleBlocks, exampleFiles, func(t *testing.T, page, input string) string {
		t.Helper()
		return decided(t, input, examples.Fleet[exampleCluster](t, page))
	})
}

// decided returns the division of an example as text: the divided field, the share of each cluster with the number of
// pods of a Job, and the rest.
func decided(t *testing.T, block string, fleet []exampleCluster) string {
	t.Helper()
	var e example
	if err := yaml.UnmarshalStrict([]byte(block), &e); err != nil {
		t.Fatalf("%v in\n%s", err, block)
	}
	object := &unstructured.Unstructured{}
	data, err := yaml.Marshal(e.Object)
	if err == nil {
		data, err = yaml.YAMLToJSON(data)
	}
	if err == nil {
		err = utiljson.Unmarshal(data, &object.Object)
	}
	if err != nil {
		t.Fatal(err)
	}
	in, field, err := e.input(object, fleet)
	if err != nil {
		return err.Error() + "\n"
	}
	division, err := Divide(in)
	if err != nil {
		t.Fatal(err)
	}
	binding := &hubv1.BindingSpec{ObjectRef: hubv1.ObjectReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind()}, Division: &hubv1.Division{Path: field.Path}}
	for _, c := range in.Clusters {
		binding.Clusters = append(binding.Clusters, hubv1.BindingTarget{Name: c.Name, State: hubv1.TargetPresent, Replicas: ptr.To(int32(division.Shares[c.Name]))})
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %d\n", field.Path, field.Total)
	for _, c := range in.Clusters {
		values, _ := Values(binding, c.Name, object)
		fmt.Fprintf(&out, "%s %3d", c.Name, values[0].Number)
		for _, more := range values[1:] {
			fmt.Fprintf(&out, "  %s %d", more.Path, more.Number)
		}
		out.WriteString("\n")
	}
	if division.Rest > 0 {
		fmt.Fprintf(&out, "%d of %d replicas have no room\n", division.Rest, field.Total)
	}
	return out.String()
}

func (e *example) input(object *unstructured.Unstructured, fleet []exampleCluster) (Input, Field, error) {
	field, err := Locate(object.GroupVersionKind().GroupKind(), &hubv1.PlacementSpec{Replicas: e.Replicas}, object, e.ScalePath)
	if err != nil {
		return Input{}, field, err
	}
	way := e.Replicas.Way()
	terms, err := TermsOf(way)
	if err != nil {
		return Input{}, field, err
	}
	in := Input{By: way.By, Total: field.Total, Key: "shop/web", Rebalance: ptr.Deref(way.Rebalance, false)}
	for _, m := range fleet {
		if len(e.Only) > 0 && !slices.Contains(e.Only, m.Name) {
			continue
		}
		c := terms.Cluster(m.Name, map[string]string{hubv1.RegionLabel: m.Region})
		if held, ok := e.Held[m.Name]; ok {
			c.Held = &held
		}
		if way.By == hubv1.DivideByCapacity || way.By == hubv1.DivideByPack {
			requests, err := Requests(&e.Replicas, object)
			if err != nil {
				return in, field, err
			}
			c.Room = Room(corev1.ResourceList{corev1.ResourceCPU: m.CPU, corev1.ResourceMemory: m.Memory, corev1.ResourcePods: m.Pods}, requests)
		}
		in.Clusters = append(in.Clusters, c)
	}
	return in, field, nil
}
