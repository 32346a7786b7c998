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
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// A cluster may say anything; what is kept of it fits a MemberCluster's status.
const (
	factsTimeout  = 30 * time.Second
	nodesPerPage  = 500
	maxPages      = 100
	maxVersion    = 64
	maxZones      = 64
	maxResources  = 64
	protobufFirst = "application/vnd.kubernetes.protobuf,application/json"
)

// readFacts returns the facts that could be read, on top of those known before, and why others could not.
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
	body, err := ask(ctx, requestClient(l), server+"/version", asJSON)
	if err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	defer func() { _ = body.Close() }()
	var info version.Info
	if err := json.NewDecoder(io.LimitReader(body, 16<<10)).Decode(&info); err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	return fmt.Sprintf("%.*s", maxVersion, bounded(info.GitVersion)), nil
}

func readNodes(ctx context.Context, l *line, server string) (member.Facts, error) {
	sum := newNodeSum()
	query := url.Values{"limit": {strconv.Itoa(nodesPerPage)}, "resourceVersion": {"0"}} // from the API server's memory
	for range maxPages {
		page, err := readNodePage(ctx, l, server+"/api/v1/nodes?"+query.Encode())
		if err != nil {
			return member.Facts{}, fmt.Errorf("reading the nodes: %w", err)
		}
		sum.add(page.Items)
		if page.Continue == "" {
			return sum.facts(), nil
		}
		query = url.Values{"limit": {strconv.Itoa(nodesPerPage)}, "continue": {page.Continue}}
	}
	return member.Facts{}, fmt.Errorf("reading the nodes: more than %d pages", maxPages)
}

func readNodePage(ctx context.Context, l *line, url string) (*corev1.NodeList, error) {
	body, err := ask(ctx, requestClient(l), url, protobufFirst)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	page := &corev1.NodeList{}
	if _, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(data, nil, page); err != nil {
		return nil, fmt.Errorf("%w: %s", errStrange, bounded(err.Error()))
	}
	return page, nil
}

// nodeSum folds nodes, page by page, into facts.
type nodeSum struct {
	nodes                 hubv1.NodeSummary
	regions, zones        map[string]bool
	capacity, allocatable corev1.ResourceList
}

func newNodeSum() *nodeSum {
	return &nodeSum{
		regions: map[string]bool{}, zones: map[string]bool{},
		capacity: corev1.ResourceList{}, allocatable: corev1.ResourceList{},
	}
}

func (s *nodeSum) add(nodes []corev1.Node) {
	for i := range nodes {
		node := &nodes[i]
		s.nodes.Total++
		s.regions[labelValue(node, hubv1.RegionLabel)] = true
		if zone := labelValue(node, hubv1.ZoneLabel); zone != "" {
			s.zones[zone] = true
		}
		addResources(s.capacity, node.Status.Capacity)
		if !isReady(node) {
			continue
		}
		s.nodes.Ready++
		if !node.Spec.Unschedulable {
			addResources(s.allocatable, node.Status.Allocatable)
		}
	}
}

// facts has a region only if every node says the same one. Its capacity is not nil, even without nodes.
func (s *nodeSum) facts() member.Facts {
	f := member.Facts{Nodes: s.nodes, Capacity: fitting(s.capacity), Allocatable: fitting(s.allocatable)}
	if len(s.regions) == 1 {
		for region := range s.regions {
			f.Region = region
		}
	}
	f.Zones = slices.Sorted(maps.Keys(s.zones))
	f.Zones = f.Zones[:min(len(f.Zones), maxZones)]
	return f
}

// labelValue is empty if the label is missing or holds what no label may.
func labelValue(node *corev1.Node, label string) string {
	value := node.Labels[label]
	if len(validation.IsValidLabelValue(value)) > 0 {
		return ""
	}
	return value
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func addResources(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}

// fitting keeps the first resources by name, cpu and memory before all others.
func fitting(list corev1.ResourceList) corev1.ResourceList {
	names := slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a, b))
	})
	kept := corev1.ResourceList{}
	for _, name := range names {
		if len(kept) < maxResources && len(validation.IsQualifiedName(string(name))) == 0 {
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
