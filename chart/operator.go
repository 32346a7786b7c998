package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// InputOf returns what renders the chart of an operator. The ConfigMap is the one that spec.archive names.
func InputOf(spec *hubv1.OperatorChart, archive *corev1.ConfigMap) (Input, error) {
	data, err := archiveIn(archive, spec.Archive.Key)
	if err != nil {
		return Input{}, err
	}
	in := Input{
		Archive: data, Digest: spec.Digest, Release: spec.ReleaseName, Namespace: spec.Namespace, Kubernetes: spec.KubernetesVersion,
	}
	if len(spec.APIVersions) > 0 {
		in.APIVersions = slices.Concat(KubernetesAPIVersions(), spec.APIVersions)
	}
	if spec.Values != nil {
		values := map[string]any{}
		if err := json.Unmarshal(spec.Values.Raw, &values); err != nil {
			return Input{}, fmt.Errorf("reading chart.values: %w", err)
		}
		in.Values = []map[string]any{values}
	}
	return in, nil
}

// archiveIn returns the value of a ConfigMap's key, or of its only key.
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

// ForMembers returns the objects that members get: definitions and other objects. Hooks of tests are left out, and
// other hooks are an error unless they are to be skipped.
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
