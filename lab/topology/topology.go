// Package topology reads the file with the clusters of a lab.
//
// Package topology checks whether a topology, which describes the clusters of a lab, is valid. Equal input gives equal
// results, and only Load reads a file.
package topology

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// PrometheusOperator is the name of the only operator that the lab can run in a cluster.
const PrometheusOperator = "prometheus-operator"

// Operators are the values that Cluster.Operators and Cluster.DeployedOperators may hold.
var Operators = []string{PrometheusOperator}

// Topology is the content of a topology file.
type Topology struct {
	// Clusters are the Kubernetes clusters of the lab. At most one of them is a hub.
	Clusters []Cluster `json:"clusters"`
}

// Cluster is one Kubernetes control plane.
type Cluster struct {
	// Name is a DNS label of at most 30 characters. It is also the name of the cluster's folder, and a prefix of the
	// cluster's keys in etcd and of the names of its nodes.
	Name string `json:"name"`
	// Hub is true for the hub, which has a separate etcd.
	Hub bool `json:"hub,omitempty"`
	// Region is the nodes' label topology.kubernetes.io/region. If it is not set, the nodes have no such label.
	Region string `json:"region,omitempty"`
	// Zones are the values of the label topology.kubernetes.io/zone. They are assigned to the nodes in turn.
	Zones []string `json:"zones,omitempty"`
	// Nodes is the number of Node objects, or Real. The default is 0.
	Nodes Nodes `json:"nodes,omitzero"`
	// Controllers is true if the cluster runs kube-controller-manager and kube-scheduler, so that pods become Ready. Such
	// a cluster also runs kwok, unless its node is real.
	Controllers bool `json:"controllers,omitempty"`
	// Operators are the operators that the lab starts in this cluster as soon as their CRDs are established. They require
	// Controllers.
	Operators []string `json:"operators,omitempty"`
	// DeployedOperators are the operators that run only while the cluster has a pod of their Deployment. They make this
	// pod Ready. They require Controllers and nodes of kwok.
	DeployedOperators []string `json:"deployedOperators,omitempty"`
}

// Nodes is the number of Node objects of a cluster, or Real. In a file, it is a number or the word real.
type Nodes int

// Real means one node with containerd, kubelet and kube-proxy, on which pods run.
const Real Nodes = math.MinInt32

// String returns the text of the value in a topology file.
func (n Nodes) String() string {
	if n == Real {
		return "real"
	}
	return strconv.Itoa(int(n))
}

// Set parses the value of a flag.
func (n *Nodes) Set(s string) error {
	if s == Real.String() {
		*n = Real
		return nil
	}
	count, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("nodes: %q is neither a number nor real", s)
	}
	*n = Nodes(count)
	return nil
}

// Type returns the type of the flag in help texts.
func (n *Nodes) Type() string { return "number|real" }

// UnmarshalJSON accepts a number or the string "real".
func (n *Nodes) UnmarshalJSON(data []byte) error { return n.Set(strings.Trim(string(data), `"`)) }

// MarshalJSON writes a number or the string "real".
func (n Nodes) MarshalJSON() ([]byte, error) {
	if n == Real {
		return []byte(`"real"`), nil
	}
	return []byte(n.String()), nil
}

// Count returns the number of Node objects. It returns 1 for Real.
func (n Nodes) Count() int {
	if n == Real {
		return 1
	}
	return int(n)
}

const (
	maxNodes    = 1000
	maxName     = 30
	nodeNameFmt = "%s-node-%d"
)

var (
	dnsLabel   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// Load reads and validates the topology in a file.
func Load(path string) (Topology, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Topology{}, fmt.Errorf("reading topology: %w", err)
	}
	t, err := Parse(data)
	if err != nil {
		return Topology{}, fmt.Errorf("topology %s: %w", path, err)
	}
	return t, nil
}

// Parse reads and validates a topology. Its error names every wrong field.
func Parse(data []byte) (Topology, error) {
	var t Topology
	if err := yaml.UnmarshalStrict(data, &t); err != nil {
		return Topology{}, err
	}
	return t, t.Validate()
}

// Validate returns an error with all faults of a topology.
func (t Topology) Validate() error {
	var faults []error
	if len(t.Clusters) == 0 {
		faults = append(faults, errors.New("clusters: at least one cluster is needed"))
	}
	seen, hub := map[string]int{}, -1
	for i, c := range t.Clusters {
		path := fmt.Sprintf("clusters[%d]", i)
		if first, ok := seen[c.Name]; ok {
			faults = append(faults, fmt.Errorf("%s.name: %q is already the name of clusters[%d]", path, c.Name, first))
		} else {
			seen[c.Name] = i
		}
		if c.Hub && hub >= 0 {
			faults = append(faults, fmt.Errorf("%s.hub: clusters[%d] is the hub already", path, hub))
		} else if c.Hub {
			hub = i
		}
		faults = append(faults, c.validate(path)...)
	}
	return errors.Join(faults...)
}

func (c Cluster) validate(path string) []error {
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s.%s: %s", path, field, fmt.Sprintf(format, args...)))
	}
	if !dnsLabel.MatchString(c.Name) || len(c.Name) > maxName {
		fault("name", "%q is not a DNS label of at most %d characters", c.Name, maxName)
	}
	if c.Region != "" && !labelValue.MatchString(c.Region) {
		fault("region", "%q is not a label value", c.Region)
	}
	for i, zone := range c.Zones {
		if !labelValue.MatchString(zone) {
			fault(fmt.Sprintf("zones[%d]", i), "%q is not a label value", zone)
		}
	}
	if c.Nodes != Real && (c.Nodes < 0 || c.Nodes > maxNodes) {
		fault("nodes", "%d is not between 0 and %d", c.Nodes, maxNodes)
	}
	if c.Nodes == Real && !c.Controllers {
		fault("nodes", "a real node needs controllers: true")
	}
	c.validateOperators("operators", c.Operators, fault)
	c.validateOperators("deployedOperators", c.DeployedOperators, fault)
	for i, operator := range c.DeployedOperators {
		if slices.Contains(c.Operators, operator) {
			fault(fmt.Sprintf("deployedOperators[%d]", i), "%q is also in operators, and so would run without a Deployment", operator)
		}
	}
	if len(c.DeployedOperators) > 0 && c.Nodes == Real {
		fault("deployedOperators", "a real node runs the pods of operators itself")
	}
	return faults
}

func (c Cluster) validateOperators(field string, operators []string, fault func(field, format string, args ...any)) {
	for i, operator := range operators {
		if !slices.Contains(Operators, operator) {
			fault(fmt.Sprintf("%s[%d]", field, i), "%q is unknown; known: %s", operator, strings.Join(Operators, ", "))
		}
		if slices.Index(operators, operator) < i {
			fault(fmt.Sprintf("%s[%d]", field, i), "%q is there twice", operator)
		}
	}
	if len(operators) > 0 && !c.Controllers {
		fault(field, "an operator needs controllers: true")
	}
}

// Real reports whether any cluster of the topology has a real node.
func (t Topology) Real() bool {
	return slices.ContainsFunc(t.Clusters, func(c Cluster) bool { return c.Nodes == Real })
}

// Difference returns the name of the first field in which two clusters differ. It is empty if they are equal.
func (c Cluster) Difference(other Cluster) string {
	a, b := reflect.ValueOf(c), reflect.ValueOf(other)
	for i := range a.NumField() {
		x, y := a.Field(i), b.Field(i)
		empty := x.Kind() == reflect.Slice && x.Len() == 0 && y.Len() == 0
		if !empty && !reflect.DeepEqual(x.Interface(), y.Interface()) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

// Node is a Node object that the lab or a kubelet creates.
type Node struct {
	Name   string
	Labels map[string]string
}

// NodeObjects returns the Node objects of a cluster. The zones are assigned to the nodes in turn.
func (c Cluster) NodeObjects() []Node {
	nodes := make([]Node, c.Nodes.Count())
	for i := range nodes {
		name := fmt.Sprintf(nodeNameFmt, c.Name, i)
		labels := map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
		if c.Region != "" {
			labels["topology.kubernetes.io/region"] = c.Region
		}
		if len(c.Zones) > 0 {
			labels["topology.kubernetes.io/zone"] = c.Zones[i%len(c.Zones)]
		}
		nodes[i] = Node{Name: name, Labels: labels}
	}
	return nodes
}
