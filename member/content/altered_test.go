package content

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func ofYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestAltered(t *testing.T) {
	const ports = `managedFields: [{manager: hanse, operation: Apply, fieldsV1: {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}}}}}]`
	const tags = `managedFields: [{manager: hanse, operation: Apply, fieldsV1: {"f:spec": {"f:tags": {'v:"a"': {}, 'v:"b"': {}}}}}]`
	tests := map[string]struct {
		sent, stored string // specs, unless they begin with metadata
		managed      string
		want         []string
	}{
		"a value that is stored":                           {sent: `{replicas: 4}`, stored: `{replicas: 4}`},
		"another number":                                   {sent: `{replicas: 4}`, stored: `{replicas: 2}`, want: []string{".spec.replicas 2 instead of 4"}},
		"a value that is not stored":                       {sent: `{a: {b: x}}`, stored: `{a: {}}`, want: []string{"no .spec.a.b"}},
		"an addition":                                      {sent: `{replicas: 4}`, stored: `{replicas: 4, paused: true}`},
		"an addition to a map":                             {sent: `{selector: {}}`, stored: `{selector: {a: b}}`},
		"a field for which the hub sends nothing":          {sent: `{a: null, b: ""}`, stored: `{a: x, b: y}`},
		"empty values that are not stored":                 {sent: `{a: "", b: 0, c: false, d: [], e: {f: {}}}`, stored: `{}`},
		"a switch that is turned on":                       {sent: `{suspend: false}`, stored: `{suspend: true}`, want: []string{".spec.suspend true instead of false"}},
		"an equal quantity":                                {sent: `{cpu: "0.5", memory: 1024Mi, limit: 1}`, stored: `{cpu: 500m, memory: 1Gi, limit: "1"}`},
		"another quantity":                                 {sent: `{memory: 8Gi}`, stored: `{memory: 5Gi}`, want: []string{`.spec.memory "5Gi" instead of "8Gi"`}},
		"a quantity with a huge exponent":                  {sent: `{a: "1"}`, stored: `{a: "1e999999999"}`, want: []string{`.spec.a "1e999999999" instead of "1"`}},
		"an equal duration":                                {sent: `{wait: 90s}`, stored: `{wait: 1m30s}`},
		"another duration":                                 {sent: `{wait: 90s}`, stored: `{wait: 1m}`, want: []string{`.spec.wait "1m" instead of "90s"`}},
		"an equal time":                                    {sent: `{at: "2026-01-01T01:00:00+01:00"}`, stored: `{at: "2026-01-01T00:00:00Z"}`},
		"an equal number":                                  {sent: `{a: 1.0, b: 1e3}`, stored: `{a: 1, b: 1000}`},
		"base64 with line breaks":                          {sent: `{ca: "YWJj\nZGVm\n"}`, stored: `{ca: YWJjZGVm}`},
		"text with line breaks":                            {sent: `{text: "a b\n"}`, stored: `{text: a b}`, want: []string{`.spec.text "a b" instead of "a b\n"`}},
		"an item of a list":                                {sent: `{args: [a, b]}`, stored: `{args: [a, c]}`, want: []string{`.spec.args[1] "c" instead of "b"`}},
		"an item before and an item after the hub's":       {sent: `{args: [a, b]}`, stored: `{args: [x, a, y, b, z]}`},
		"another order":                                    {sent: `{args: [a, b]}`, stored: `{args: [x, b, a]}`, want: []string{`.spec.args ["x","b","a"] instead of ["a","b"]`}},
		"a list that lost an item":                         {sent: `{args: [a, b]}`, stored: `{args: [a]}`, want: []string{`.spec.args ["a"] instead of ["a","b"]`}},
		"defaults in the items of a list":                  {sent: `{rules: [{a: 1}]}`, stored: `{rules: [{a: 1, b: 2}]}`},
		"a keyed list in another order, with another item": {managed: ports, sent: `{ports: [{port: 80, name: web}]}`, stored: `{ports: [{port: 1, protocol: TCP}, {port: 80, protocol: TCP, name: web}]}`},
		"a field of an item of a keyed list":               {managed: ports, sent: `{ports: [{port: 80, name: web}]}`, stored: `{ports: [{port: 80, protocol: TCP, name: other}]}`, want: []string{`.spec.ports[port=80,protocol="TCP"].name "other" instead of "web"`}},
		"an item that left a set":                          {managed: tags, sent: `{tags: [a, b]}`, stored: `{tags: [c, b]}`, want: []string{`no .spec.tags[="a"]`}},
		"a label":                                          {sent: `metadata: {labels: {team: a, app: x}}`, stored: `metadata: {labels: {team: b, app: x, more: y}}`, want: []string{`.metadata.labels.team "b" instead of "a"`}},
		"the hub's own annotations":                        {sent: `metadata: {annotations: {hanse.dev/digest: a}}`, stored: `metadata: {annotations: {hanse.dev/digest: b}}`},
		"more than three":                                  {sent: `{a: 1, b: 1, c: 1, d: 1, e: 1}`, stored: `{a: 2, b: 2, c: 2, d: 2, e: 2}`, want: []string{".spec.a 2 instead of 1, .spec.b 2 instead of 1, .spec.c 2 instead of 1 and 2 more"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := func(text string) *unstructured.Unstructured {
				if !strings.HasPrefix(text, "metadata") {
					text = "spec: " + text
				}
				return ofYAML(t, "apiVersion: example.com/v1\nkind: Thing\n"+text+"\n")
			}
			stored := object(tc.stored)
			if tc.managed != "" {
				stored.Object["metadata"] = ofYAML(t, "apiVersion: v1\nkind: X\nmetadata: {"+tc.managed+"}").Object["metadata"]
			}
			got := AlterationText(Altered(stored, object(tc.sent)), false)
			if diff := cmp.Diff(strings.Join(tc.want, ""), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheTextForASecretHasNoValues(t *testing.T) {
	secret := func(value string) *unstructured.Unstructured {
		return ofYAML(t, "apiVersion: v1\nkind: Secret\ndata: {password: "+value+"}\n")
	}
	if got := AlterationText(Altered(secret("YQ=="), secret("Yg==")), true); got != "another .data.password" {
		t.Errorf("got %q", got)
	}
}
