package chart

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// hubWith returns Sources with these ConfigMaps.
func hubWith(has map[string]*corev1.ConfigMap) Sources {
	return Sources{ConfigMap: func(name string, optional bool) (*corev1.ConfigMap, error) {
		m := has[name]
		if m == nil && !optional {
			return nil, errors.New("there is no ConfigMap " + name)
		}
		if m != nil {
			m.Namespace, m.Name = "hanse-system", name
		}
		return m, nil
	}}
}

func TestInputOfNamesWhatTheConfigMapLacks(t *testing.T) {
	archive := []byte("an archive")
	tests := map[string]struct {
		data map[string][]byte
		key  string
		want string
	}{
		"the only key is the archive":  {data: map[string][]byte{"a.tgz": archive}},
		"the named key is the archive": {data: map[string][]byte{"a.tgz": archive, "b.tgz": nil}, key: "a.tgz"},
		"nothing is binary":            {want: "ConfigMap hanse-system/rotors has no key in binaryData: create it from the archive, by kubectl create configmap --from-file"},
		"two keys without a name": {
			data: map[string][]byte{"a.tgz": archive, "b.tgz": nil},
			want: "ConfigMap hanse-system/rotors has 2 keys in binaryData: name the one with the archive in chart.archive.key",
		},
		"another key": {data: map[string][]byte{"b.tgz": nil}, key: "a.tgz", want: `ConfigMap hanse-system/rotors has no key "a.tgz" in binaryData: it has b.tgz`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.OperatorChart{Archive: &hubv1.ArchiveSource{ConfigMap: "rotors", Key: tc.key}}
			in, err := InputOf(spec, hubWith(map[string]*corev1.ConfigMap{"rotors": {BinaryData: tc.data}}))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("the error is %q", got)
			}
			if err == nil && string(in.Archive) != string(archive) {
				t.Errorf("the archive is %q", in.Archive)
			}
		})
	}
}

func TestValuesOfConfigMapsComeInTheirOrderBeforeThoseOfTheSpec(t *testing.T) {
	has := map[string]*corev1.ConfigMap{
		"base":  {Data: map[string]string{"values.yaml": "replicas: 1\nzone: eu\n", "more.yaml": "replicas: 2\n", "list.yaml": "[1]"}},
		"empty": {Data: map[string]string{"values.yaml": ""}},
	}
	tests := map[string]struct {
		from []hubv1.ValuesSource
		want []map[string]any
		says string
	}{
		"two keys and the values of the spec": {
			from: []hubv1.ValuesSource{{ConfigMap: "base"}, {ConfigMap: "base", Key: "more.yaml"}},
			want: []map[string]any{{"replicas": 1.0, "zone": "eu"}, {"replicas": 2.0}, {"replicas": 3.0}},
		},
		"an empty text":                 {from: []hubv1.ValuesSource{{ConfigMap: "empty"}}, want: []map[string]any{nil, {"replicas": 3.0}}},
		"an optional ConfigMap and key": {from: []hubv1.ValuesSource{{ConfigMap: "none", Optional: true}, {ConfigMap: "base", Key: "none", Optional: true}}, want: []map[string]any{nil, nil, {"replicas": 3.0}}},
		"a missing ConfigMap":           {from: []hubv1.ValuesSource{{ConfigMap: "none"}}, says: "there is no ConfigMap none"},
		"a missing key":                 {from: []hubv1.ValuesSource{{ConfigMap: "base", Key: "none"}}, says: `ConfigMap hanse-system/base has no key "none" in data, which chart.valuesFrom names`},
		"values that are a list": {
			from: []hubv1.ValuesSource{{ConfigMap: "base", Key: "list.yaml"}},
			says: `reading the values in key "list.yaml" of ConfigMap hanse-system/base: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &hubv1.OperatorChart{ValuesFrom: tc.from, Values: &runtime.RawExtension{Raw: []byte(`{"replicas": 3}`)}}
			in, err := InputOf(spec, hubWith(has))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.says {
				t.Errorf("the error is %q", got)
			}
			if diff := cmp.Diff(tc.want, in.Values); err == nil && diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}
