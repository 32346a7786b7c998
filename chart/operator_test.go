package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

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
			spec := &hubv1.OperatorChart{Archive: hubv1.ArchiveSource{ConfigMap: "rotors", Key: tc.key}}
			in, err := InputOf(spec, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "hanse-system", Name: "rotors"}, BinaryData: tc.data})
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
