package placement

import (
	"cmp"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/examples"
)

var update = flag.Bool("update", false, "write what is decided into docs/placement.md and testdata/examples.md")

// exampleFiles are the files with examples, and the minimum number of examples in each. The guide shows what readers
// need. The file in testdata covers all other rules.
var exampleFiles = []examples.File{
	{Path: "../docs/placement.md", AtLeast: 15},
	{Path: "testdata/examples.md", AtLeast: 34},
}

// An example is a block of YAML, followed by a block of text with the decision.
var exampleBlocks = regexp.MustCompile("```yaml\n([^`]*)```\n\n```text\n([^`]*)```")

// exampleCluster is a cluster in the YAML of the examples.
type exampleCluster struct {
	Name        string              `json:"name"`
	Region      string              `json:"region"`
	Zone        string              `json:"zone"`
	Labels      map[string]string   `json:"labels"`
	Annotations map[string]string   `json:"annotations"`
	Taints      []corev1.Taint      `json:"taints"`
	Version     string              `json:"version"`
	Nodes       int32               `json:"nodes"`
	CPU         string              `json:"cpu"`
	Memory      string              `json:"memory"`
	Objects     int                 `json:"objects"`
	Serves      map[string][]string `json:"serves"` // served versions, by Kind.group
	// Operators maps the name of an operator to its version on the cluster.
	Operators     map[string]string `json:"operators"`
	Away          bool              `json:"away"`
	Unschedulable bool              `json:"unschedulable"`
	Leaving       bool              `json:"leaving"`
	Closed        bool              `json:"closed"` // its allowedNamespaces exclude the object's namespace
	Draining      bool              `json:"draining"`
	Evict         bool              `json:"evict"`   // the drain also removes objects that no other cluster can take
	AwayFor       string            `json:"awayFor"` // for how long it has the taint hanse.dev/unreachable:NoExecute
}

type example struct {
	Spec *hubv1.PlacementSpec `json:"spec"`
	// Object is the version and the kind of the object, such as v1 Prometheus.monitoring.coreos.com.
	Object string `json:"object"`
	// OtherVersions are further versions at which clusters may receive the object.
	OtherVersions []string `json:"otherVersions"`
	// Holds names the clusters that hold the object.
	Holds []string `json:"holds"`
	// Evicting names the clusters that still hold the object, but that other clusters have replaced.
	Evicting []string `json:"evicting"`
	// Excluded maps a cluster to the rule of an override policy that excludes the object from it.
	Excluded map[string]string `json:"excluded"`
	// Divided is true if the replicas are divided.
	Divided bool `json:"divided"`
	// Only names the clusters of the example. If it is unset, the example has all clusters of the fleet.
	Only []string `json:"only"`
	// With changes clusters of the fleet, or adds clusters to it.
	With []exampleCluster `json:"with"`
}

func TestTheExamplesOfTheGuide(t *testing.T) {
	examples.Run(t, *update, exampleBlocks, exampleFiles, func(t *testing.T, page, input string) string {
		t.Helper()
		return decided(t, input, examples.Fleet[exampleCluster](t, page))
	})
}

func decided(t *testing.T, block string, fleet []exampleCluster) string {
	t.Helper()
	var e example
	if err := yaml.UnmarshalStrict([]byte(block), &e); err != nil {
		t.Fatal(err)
	}
	p, err := Compile(e.Spec)
	if err != nil {
		return err.Error() + "\n"
	}
	in := Input{Placement: p, Held: set(e.Holds), Evicting: set(e.Evicting), Divided: e.Divided, Now: noon}
	in.Object, in.ObjectName = hubv1.HubObject{GVK: kindOf(e.Object), OtherVersions: e.OtherVersions}, "shop/web"
	for cluster, rule := range e.Excluded {
		if in.Excluded == nil {
			in.Excluded = map[string]Exclusion{}
		}
		in.Excluded[cluster] = Exclusion{Rule: rule}
	}
	for _, c := range fleet {
		if len(e.Only) > 0 && !slices.Contains(e.Only, c.Name) {
			continue
		}
		for _, w := range e.With {
			if w.Name == c.Name {
				c = c.with(w)
			}
		}
		in.Clusters = append(in.Clusters, c.cluster())
	}
	for _, w := range e.With {
		if !slices.ContainsFunc(fleet, func(c exampleCluster) bool { return c.Name == w.Name }) {
			in.Clusters = append(in.Clusters, w.cluster())
		}
	}
	return shown(Decide(in))
}

func kindOf(object string) schema.GroupVersionKind {
	version, kind, _ := strings.Cut(cmp.Or(object, "v1 Prometheus.monitoring.coreos.com"), " ")
	gk := schema.ParseGroupKind(kind)
	return gk.WithVersion(version)
}

// with returns the cluster with the fields that are set in w.
func (c exampleCluster) with(w exampleCluster) exampleCluster {
	labels := map[string]string{}
	for _, m := range []map[string]string{c.Labels, w.Labels} {
		for k, v := range m {
			labels[k] = v
		}
	}
	c.Labels = labels
	c.Region, c.Zone, c.Version = cmp.Or(w.Region, c.Region), cmp.Or(w.Zone, c.Zone), cmp.Or(w.Version, c.Version)
	c.CPU, c.Memory, c.Nodes, c.Objects = cmp.Or(w.CPU, c.CPU), cmp.Or(w.Memory, c.Memory), cmp.Or(w.Nodes, c.Nodes), cmp.Or(w.Objects, c.Objects)
	c.Taints, c.Serves, c.Annotations, c.Operators = append(c.Taints, w.Taints...), w.Serves, w.Annotations, w.Operators
	c.Away, c.Unschedulable, c.Leaving, c.Closed, c.Draining, c.Evict, c.AwayFor = w.Away, w.Unschedulable, w.Leaving, w.Closed, w.Draining, w.Evict, w.AwayFor
	return c
}

func (c exampleCluster) cluster() Cluster {
	out := Cluster{
		Name: c.Name, Labels: map[string]string{}, Annotations: c.Annotations, Taints: c.Taints,
		Unschedulable: c.Unschedulable, Ready: !c.Away && c.AwayFor == "", NamespaceAllowed: !c.Closed, Objects: c.Objects,
		Departure: Departure{Draining: c.Draining, TakesAway: c.Evict, Leaving: c.Leaving},
		Facts:     Facts{Version: c.Version, Nodes: hubv1.NodeSummary{Total: c.Nodes, Ready: c.Nodes}},
	}
	for k, v := range c.Labels {
		out.Labels[k] = v
	}
	for k, v := range map[string]string{hubv1.RegionLabel: c.Region, hubv1.ZoneLabel: c.Zone} {
		if v != "" {
			out.Labels[k] = v
		}
	}
	if c.CPU != "" {
		out.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(c.CPU), corev1.ResourceMemory: resource.MustParse(cmp.Or(c.Memory, "0"))}
		out.Capacity = out.Allocatable
	}
	if since, err := time.ParseDuration(c.AwayFor); err == nil {
		at := &metav1.Time{Time: noon.Add(-since)}
		out.Taints = append(slices.Clone(c.Taints), corev1.Taint{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoSchedule, TimeAdded: at},
			corev1.Taint{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoExecute, TimeAdded: at})
	}
	for name, version := range c.Operators {
		out.Operators = append(out.Operators, hubv1.OperatorFact{Name: name, Version: version, Installed: true})
	}
	for kind, versions := range c.Serves {
		if out.Served == nil {
			out.Served = map[schema.GroupKind][]string{}
		}
		out.Served[schema.ParseGroupKind(kind)] = versions
	}
	return out
}

// shown returns a decision as text.
func shown(d Decision) string {
	var b strings.Builder
	line := func(cluster, verb string, score int64, reason, message string) {
		fmt.Fprintf(&b, "%-6s %-9s %5d  %s", cluster, verb, score, reason)
		if message != "" {
			fmt.Fprintf(&b, ": %s", message)
		}
		b.WriteByte('\n')
	}
	for _, x := range d.Targets {
		line(x.Cluster, "holds", x.Score, x.Reason, x.Message)
	}
	for _, x := range d.Evict {
		line(x.Cluster, "evicting", x.Score, x.Reason, x.Message)
	}
	for _, x := range d.Withdraw {
		line(x.Cluster, "loses", x.Score, x.Reason, x.Message)
	}
	for _, x := range d.Rejected {
		line(x.Cluster, "without", x.Score, x.Reason, x.Message)
	}
	for _, x := range d.Missing {
		fmt.Fprintf(&b, "%-6s unknown\n", x)
	}
	if d.Group != "" {
		fmt.Fprintf(&b, "affinity group %s\n", d.Group)
	}
	for _, s := range d.Shortfalls {
		fmt.Fprintf(&b, "short of %s\n", s.Message)
	}
	for _, x := range d.Unmoved {
		fmt.Fprintf(&b, "%-6s stays: %s: %s\n", x.Cluster, x.Reason, x.Message)
	}
	if d.Again > 0 {
		fmt.Fprintf(&b, "again after %s\n", d.Again)
	}
	if d.Kept {
		b.WriteString("every cluster keeps its copy\n")
	}
	return b.String()
}
