package chart

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Sources give access to the ConfigMaps and the fetched archive that the chart of an operator uses.
type Sources struct {
	// ConfigMap returns the ConfigMap with this name in hanse-system. If optional is true and the ConfigMap does not
	// exist, it returns nil.
	ConfigMap func(name string, optional bool) (*corev1.ConfigMap, error)
	// Fetched is the archive that the caller has fetched from spec.chart.repository. It is nil if the archive is in a
	// ConfigMap.
	Fetched []byte
}

// InputOf returns the Input with which the chart of an operator is rendered.
func InputOf(spec *hubv1.OperatorChart, sources Sources) (Input, error) {
	in := Input{
		Archive: sources.Fetched, Digest: spec.Digest, Release: spec.ReleaseName, Namespace: spec.Namespace, Kubernetes: spec.KubernetesVersion,
		GeneratedValues: spec.GeneratedValues,
	}
	if spec.Archive != nil {
		m, err := sources.ConfigMap(spec.Archive.ConfigMap, false)
		if err != nil {
			return Input{}, err
		}
		if in.Archive, err = archiveIn(m, spec.Archive.Key); err != nil {
			return Input{}, err
		}
	}
	if len(spec.APIVersions) > 0 {
		in.APIVersions = slices.Concat(KubernetesAPIVersions(), spec.APIVersions)
	}
	for _, from := range spec.ValuesFrom {
		m, err := sources.ConfigMap(from.ConfigMap, from.Optional)
		if err != nil {
			return Input{}, err
		}
		values, err := valuesIn(m, from)
		if err != nil {
			return Input{}, err
		}
		in.Values = append(in.Values, values)
	}
	if spec.Values != nil {
		values := map[string]any{}
		if err := json.Unmarshal(spec.Values.Raw, &values); err != nil {
			return Input{}, fmt.Errorf("reading chart.values: %w", err)
		}
		in.Values = append(in.Values, values)
	}
	return in, nil
}

// valuesIn returns the values that a ConfigMap has under the key of from. It returns no values if the ConfigMap is nil.
func valuesIn(m *corev1.ConfigMap, from hubv1.ValuesSource) (map[string]any, error) {
	if m == nil {
		return nil, nil
	}
	key := cmp.Or(from.Key, "values.yaml")
	text, ok := m.Data[key]
	if !ok {
		if from.Optional {
			return nil, nil
		}
		return nil, fmt.Errorf("ConfigMap %s/%s has no key %q in data, which chart.valuesFrom names", m.Namespace, m.Name, key)
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("reading the values in key %q of ConfigMap %s/%s: %w", key, m.Namespace, m.Name, err)
	}
	return values, nil
}

// archiveIn returns the archive that a ConfigMap has under the key. If the key is empty, the ConfigMap must have only
// one key.
func archiveIn(m *corev1.ConfigMap, key string) ([]byte, error) {
	keys := slices.Sorted(maps.Keys(m.BinaryData))
	if len(keys) == 0 {
		return nil, fmt.Errorf("ConfigMap %s/%s has no key in binaryData: create it from the archive, by kubectl create configmap --from-file", m.Namespace, m.Name)
	}
	if key == "" {
		if len(keys) != 1 {
			return nil, fmt.Errorf("ConfigMap %s/%s has %d keys in binaryData: name the one with the archive in chart.archive.key", m.Namespace, m.Name, len(keys))
		}
		key = keys[0]
	}
	data, ok := m.BinaryData[key]
	if !ok {
		return nil, fmt.Errorf("ConfigMap %s/%s has no key %q in binaryData: it has %s", m.Namespace, m.Name, key, strings.Join(keys, ", "))
	}
	return data, nil
}

// ForMembers returns the objects that members get: the definitions and the other objects of the chart. Hooks are left
// out. If hooks is not Skip, a hook is an error, except a test or a hook that helm itself ignores.
func (r Rendered) ForMembers(hooks hubv1.ChartHooks) ([]*unstructured.Unstructured, error) {
	if hooks != hubv1.ChartHooksSkip {
		for _, h := range r.Hooks {
			if !h.Test && !h.Ignored {
				return nil, fmt.Errorf("chart %s has the hook %s (%s), which Hanse does not run: set chart.hooks to Skip, if the operator works without it",
					r.Name, hubv1.IdentityOf(h.Object), strings.Join(h.Events, ", "))
			}
		}
	}
	return slices.Concat(r.Definitions, r.Objects), nil
}
