package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

// These limits bound a response, because a hostile cluster may send one of any size. The facts that the hub keeps about
// a cluster, such as its version and nodes, therefore fit into the status of a MemberCluster.
const (
	factsTimeout = 30 * time.Second
	nodesPerPage = 500
	maxPages     = 100
	maxNodes     = 50_000
	maxNode      = 2 << 20   // maximum size of a node, in bytes
	maxNodeBytes = 512 << 20 // of a page, which may have all nodes, despite limit
	maxVersion   = 64
	maxZones     = 64
	maxResources = 64
	maxNames     = 4096 // names of resources while nodes are read; further names are ignored
)

// readFacts reads the facts of the cluster, such as its version and the capacity of its nodes. known are the facts from
// the last read. If a part of the facts cannot be read, the result keeps the known values of this part, and readFacts
// also returns an error.
func readFacts(ctx context.Context, l *line, server string, known member.Facts) (member.Facts, error) {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	kubernetes, versionErr := readVersion(ctx, l, server)
	if versionErr == nil {
		known.Kubernetes = kubernetes
	}
	nodes, nodesErr := readNodes(ctx, l, server)
	if nodesErr == nil {
		nodes.ClusterID, nodes.Kubernetes = known.ClusterID, known.Kubernetes
		known = nodes
	}
	return known, errors.Join(versionErr, nodesErr)
}

func readVersion(ctx context.Context, l *line, server string) (string, error) {
	body, err := ask(ctx, readClient(l), server+"/version")
	if err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	defer func() { _ = body.Close() }()
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(body, 16<<10)).Decode(&info); err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	return fmt.Sprintf("%.*s", maxVersion, printable(info.GitVersion)), nil
}

func readNodes(ctx context.Context, l *line, server string) (member.Facts, error) {
	sum := newNodeSum()
	// With resourceVersion 0, the API server answers from memory.
	query := url.Values{"limit": {strconv.Itoa(nodesPerPage)}, "resourceVersion": {"0"}}
	for range maxPages {
		next, err := readNodePage(ctx, l, server+"/api/v1/nodes?"+query.Encode(), sum)
		if err != nil {
			return member.Facts{}, fmt.Errorf("reading the nodes: %w", err)
		}
		if next == "" {
			return sum.facts(), nil
		}
		query = url.Values{"limit": {strconv.Itoa(nodesPerPage)}, "continue": {next}}
	}
	err := &answer.TooLargeError{What: "the list of nodes", Bound: fmt.Sprintf("%d pages", maxPages)}
	l.tooLarge("GET /api/v1/nodes", err)
	return member.Facts{}, fmt.Errorf("reading the nodes: %w", err)
}

// readNodePage adds the nodes of one page to the totals in sum. It decodes one node at a time, because a server may
// send a larger page than requested. next is the token of the next page.
func readNodePage(ctx context.Context, l *line, url string, sum *nodeSum) (next string, err error) {
	body, err := ask(answer.Streamed(ctx, maxNodeBytes), readClient(l), url)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	bounds := answer.ListBounds{Items: maxNodes - int(sum.nodes.Total), ItemBytes: maxNode}
	next, err = answer.List(body, "items", bounds, sum.read)
	return next, listError(l, "GET /api/v1/nodes", err)
}

// listError returns the error for a response that exceeds the limits, or that is not a list from an API server.
func listError(l *line, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case answer.IsTooLarge(err):
		l.tooLarge(what, err)
		return err
	}
	return fmt.Errorf("%w: %s", errStrange, printable(err.Error()))
}

// node has the fields of a Node from which the hub computes facts about a cluster, such as its capacity and region.
type node struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool `json:"unschedulable"`
	} `json:"spec"`
	Status struct {
		Capacity    map[string]quantity `json:"capacity"`
		Allocatable map[string]quantity `json:"allocatable"`
		Conditions  []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// quantity is a resource.Quantity. It is zero if its text is longer than any text that a real node has. Parsing
// "1e2147483647" would allocate memory for all its digits.
type quantity struct{ resource.Quantity }

var sensibleQuantity = regexp.MustCompile(`^[0-9]{1,20}(\.[0-9]{1,20})?([numkMGTPE]|[KMGTPE]i|[eE]\+?[0-9]{1,2})?$`)

// UnmarshalJSON implements json.Unmarshaler.
func (q *quantity) UnmarshalJSON(raw []byte) error {
	text := strings.Trim(string(raw), `"`)
	if !sensibleQuantity.MatchString(text) {
		return nil
	}
	parsed, err := resource.ParseQuantity(text)
	if err == nil {
		q.Quantity = parsed
	}
	return nil
}

// nodeSum has the totals of a cluster's nodes. It gets the nodes one by one.
type nodeSum struct {
	nodes                 hubv1.NodeSummary
	region                string
	regions               bool     // nodes have different regions
	zones                 []string // sorted, the first maxZones
	capacity, allocatable corev1.ResourceList
}

func newNodeSum() *nodeSum {
	return &nodeSum{capacity: corev1.ResourceList{}, allocatable: corev1.ResourceList{}}
}

// read adds a node to the totals. raw is the JSON of the node.
func (s *nodeSum) read(raw []byte) error {
	var n node
	if err := utiljson.Unmarshal(raw, &n); err != nil {
		return err
	}
	s.add(&n)
	return nil
}

func (s *nodeSum) add(n *node) {
	s.nodes.Total++
	region := labelValue(n, hubv1.RegionLabel)
	if s.nodes.Total == 1 {
		s.region = region
	}
	s.regions = s.regions || region != s.region
	if zone := labelValue(n, hubv1.ZoneLabel); zone != "" {
		if at, found := slices.BinarySearch(s.zones, zone); !found {
			s.zones = slices.Insert(s.zones, at, zone)
			s.zones = s.zones[:min(len(s.zones), maxZones)]
		}
	}
	addResources(s.capacity, n.Status.Capacity)
	if !n.isReady() {
		return
	}
	s.nodes.Ready++
	if !n.Spec.Unschedulable {
		addResources(s.allocatable, n.Status.Allocatable)
	}
}

// facts returns the facts about a cluster, such as its capacity and zones, that follow from all nodes that were read.
// The region is set only if all nodes have the same one. The capacity is an empty list, not nil, if there are no nodes.
func (s *nodeSum) facts() member.Facts {
	f := member.Facts{Nodes: s.nodes, Zones: s.zones, Capacity: fitting(s.capacity), Allocatable: fitting(s.allocatable)}
	if !s.regions {
		f.Region = s.region
	}
	return f
}

// labelValue returns the value of a label. The result is empty if the label is missing or has an invalid value.
func labelValue(n *node, label string) string {
	value := n.Metadata.Labels[label]
	if len(value) > validation.LabelValueMaxLength || len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return strings.Clone(value)
}

func (n *node) isReady() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == string(corev1.NodeReady) && c.Status == string(corev1.ConditionTrue) {
			return true
		}
	}
	return false
}

func addResources(sum corev1.ResourceList, more map[string]quantity) {
	for name, quantity := range more {
		name := corev1.ResourceName(name)
		total, known := sum[name]
		if !known && (len(sum) >= maxNames && rank(name) > 0 || !member.IsResourceName(name)) {
			continue
		}
		total.Add(quantity.Quantity)
		sum[name] = total
	}
}

// fitting returns the list with at most maxResources resources: first cpu and memory, then the others in sorted order.
func fitting(list corev1.ResourceList) corev1.ResourceList {
	names := slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
	})
	kept := corev1.ResourceList{}
	for _, name := range names {
		if len(kept) < maxResources {
			kept[name] = list[name]
		}
	}
	return kept
}

func rank(name corev1.ResourceName) int {
	if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
		return 0
	}
	return 1
}
