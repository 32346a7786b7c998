//go:build !race

package rollup

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/test/operators"
)

// statusesOf are sample statuses of a kind at one version.
type statusesOf struct {
	crd     *apiextensionsv1.CustomResourceDefinition
	version string
	all     []map[string]any
}

// only returns the CRD with the version k.version as its only version.
func (k statusesOf) only() *apiextensionsv1.CustomResourceDefinition {
	crd := k.crd.DeepCopy()
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name != k.version })
	return crd
}

func operatorStatuses(t *testing.T) map[schema.GroupVersionKind]statusesOf {
	t.Helper()
	out := map[schema.GroupVersionKind]statusesOf{}
	for _, s := range operators.Samples(t) {
		status, _ := s.Object.Object["status"].(map[string]any)
		gvk := s.Object.GroupVersionKind()
		k := out[gvk]
		k.crd, k.version = operators.Definition(t, gvk.GroupKind()), gvk.Version
		k.all = append(k.all, status)
		out[gvk] = k
	}
	return out
}

// merge merges the statuses as if the clusters c0, c1 and so on had reported them. The cluster with the index away is
// unreachable.
func (k statusesOf) merge(t test, statuses []map[string]any, away int) (status map[string]any, leftOut []string) {
	s, _, err := NewSchema(k.crd, k.version)
	if err != nil {
		t.Fatal(err)
	}
	var rows []hubv1.ClusterRow
	var targets []hubv1.BindingTarget
	for i, status := range statuses {
		name := fmt.Sprint("c", i)
		row := hubv1.ClusterRow{
			Name: name, UID: types.UID(name), Generation: 1, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy,
			LastTransitionTime: &noon, Observed: raw(health.Project(schema.GroupKind{Group: k.crd.Spec.Group, Kind: k.crd.Spec.Names.Kind}, status)),
		}
		if i == away {
			row.Applied, row.Health, row.Reason = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable
		}
		rows = append(rows, row)
		targets = append(targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	template := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(1)}}}
	status, leftOut, err = MergeStatus(s, Rules{}, template, rows, targets, noon)
	if err != nil && !errors.Is(err, ErrRequired) && !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	return status, leftOut
}

func TestStatusesOfOperatorsMergeToValidOnes(t *testing.T) {
	for gvk, k := range operatorStatuses(t) {
		t.Run(gvk.GroupKind().String(), func(t *testing.T) {
			crd := k.only()
			rapid.Check(t, func(t *rapid.T) {
				statuses := rapid.SliceOfN(rapid.SampledFrom(k.all), 1, 4).Draw(t, "statuses")
				status, _ := k.merge(t, statuses, rapid.IntRange(-1, 3).Draw(t, "away"))
				if status == nil {
					return
				}
				if faults := faults(t, crd, status); faults != nil {
					t.Fatalf("%v\n%v", faults, status)
				}
			})
		})
	}
}

func TestTheStatusOfAnOperatorOnOneClusterIsThatOnTheHub(t *testing.T) {
	for gvk, k := range operatorStatuses(t) {
		t.Run(gvk.GroupKind().String(), func(t *testing.T) {
			for _, own := range k.all {
				status, leftOut := k.merge(t, []map[string]any{own}, -1)
				t.Logf("merged %v, left out %v", status, leftOut)
				checkPart(t, "", own, status)
			}
		})
	}
}

// checkPart fails the test if a value of the merged status differs from the value of the only copy's status. path is
// the path of the compared maps, for messages.
func checkPart(t *testing.T, path string, own, merged map[string]any) {
	t.Helper()
	for name, value := range merged {
		at := path + "." + name
		switch v := value.(type) {
		case map[string]any:
			inner, _ := own[name].(map[string]any)
			checkPart(t, at, inner, v)
		case []any:
			list, _ := own[name].([]any)
			for _, e := range v {
				checkEntry(t, at, list, e.(map[string]any))
			}
		default:
			if name != observedGenerationField && !reflect.DeepEqual(native(own[name]), value) && fmt.Sprint(own[name]) != fmt.Sprint(value) {
				t.Errorf("%s is %v, on the cluster %v", at, value, own[name])
			}
		}
	}
}

func checkEntry(t *testing.T, at string, list []any, entry map[string]any) {
	t.Helper()
	if entry["type"] == hubv1.ConditionObjectHealthy {
		return
	}
	reported := map[string]any{}
	for _, e := range list {
		own, _ := e.(map[string]any)
		if own["type"] == entry["type"] && own["name"] == entry["name"] {
			reported = own
			break
		}
	}
	for name, value := range entry {
		switch name {
		case "message", "lastTransitionTime", "lastUpdateTime", observedGenerationField:
			continue
		case "reason":
			if reported["reason"] == nil || value == ReasonFromMembers {
				continue
			}
		}
		if diff := cmp.Diff(fmt.Sprint(reported[name]), fmt.Sprint(value)); diff != "" {
			t.Errorf("%s of %v: %s", at, entry["type"], diff)
		}
	}
}
