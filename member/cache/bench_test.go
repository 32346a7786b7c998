package cache

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/member/health"
)

// The widget is an object of 1 KiB with two managers.
func BenchmarkNewRecord(b *testing.B) {
	text, err := os.ReadFile("../content/testdata/widget.yaml")
	if err != nil {
		b.Fatal(err)
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		b.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		newRecord(nil, u, health.Conventions{HasStatus: true}, nil)
	}
}
