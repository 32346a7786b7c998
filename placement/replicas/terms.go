package replicas

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Terms are the parsed weights and limits of a placement's policy for dividing replicas.
type Terms struct {
	weights []term[int32]
	limits  []term[hubv1.ReplicaLimit]
}

// term is one entry of a list of weights or limits: a selection of clusters, and the value for these clusters.
type term[T any] struct {
	names    []string
	selector labels.Selector
	value    T
}

// TermsOf parses the weights and limits of a policy with their cluster selectors.
func TermsOf(way hubv1.DividePolicy) (Terms, error) {
	var t Terms
	for i, w := range way.Weights {
		entry, err := termOf(w.Clusters, w.Weight)
		if err != nil {
			return Terms{}, fmt.Errorf("reading spec.replicas.divide.weights[%d].clusters.labelSelector: %w", i, err)
		}
		t.weights = append(t.weights, entry)
	}
	for i, l := range way.Limits {
		entry, err := termOf(l.Clusters, l)
		if err != nil {
			return Terms{}, fmt.Errorf("reading spec.replicas.divide.limits[%d].clusters.labelSelector: %w", i, err)
		}
		t.limits = append(t.limits, entry)
	}
	return t, nil
}

func termOf[T any](clusters *hubv1.RuleClusters, value T) (term[T], error) {
	t := term[T]{selector: labels.Everything(), value: value}
	if clusters == nil {
		return t, nil
	}
	t.names = clusters.Names
	if clusters.LabelSelector == nil {
		return t, nil
	}
	sel, err := metav1.LabelSelectorAsSelector(clusters.LabelSelector)
	t.selector = sel
	return t, err
}

// Cluster returns the input of Divide for one cluster, with its weight and limits. selectable has the labels of the
// cluster to which the selectors of the policy apply.
func (t Terms) Cluster(name string, selectable map[string]string) Cluster {
	c := Cluster{Name: name, Max: Unlimited, Room: Unlimited}
	if t.weights == nil {
		c.Weight = 1
	} else if w := selecting(t.weights, name, selectable); w != nil {
		c.Weight = int64(*w)
	}
	if l := selecting(t.limits, name, selectable); l != nil {
		if l.MinReplicas != nil {
			c.Min = int64(*l.MinReplicas)
		}
		if l.MaxReplicas != nil {
			c.Max = int64(*l.MaxReplicas)
		}
	}
	return c
}

// selecting returns the value of the first entry that selects the cluster. It is nil if no entry selects the cluster.
func selecting[T any](terms []term[T], name string, selectable map[string]string) *T {
	for i := range terms {
		t := &terms[i]
		if (len(t.names) == 0 || slices.Contains(t.names, name)) && t.selector.Matches(labels.Set(selectable)) {
			return &t.value
		}
	}
	return nil
}
