package chart

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// authority is a chart with a CA, a certificate of the CA, and the webhook that presents the certificate.
const authority = `{{- $ca := genCA "rotors" 365 }}
{{- $cert := genSignedCert "rotors" nil (list "rotors.shop.svc") 90 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: webhook}
type: kubernetes.io/tls
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
  fixed: {{ .Values.fixed | default "a" | b64enc }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: rotors}
webhooks:
{{- range .Values.webhooks | default (list "one") }}
- name: {{ . }}.example.com
  clientConfig: {caBundle: {{ $ca.Cert | b64enc }}}
{{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: rotors}
spec:
  template:
    metadata:
      annotations: {checksum/webhook: {{ $cert.Key | sha256sum }}}
`

func fields(r Rendered) []string {
	var out []string
	for _, f := range r.Generated {
		out = append(out, f.String())
	}
	for _, f := range r.Checksums {
		out = append(out, f.String()+" (checksum)")
	}
	return out
}

func TestRenderNamesTheFieldsThatTemplatesGenerate(t *testing.T) {
	secret := func(field, value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n" + field + ": {k: " + value + "}\n"
	}
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a CA, its certificate and its webhooks": {authority, []string{
			"Secret shop/webhook, field /data/ca.crt", "Secret shop/webhook, field /data/tls.crt", "Secret shop/webhook, field /data/tls.key",
			"ValidatingWebhookConfiguration.admissionregistration.k8s.io rotors, field /webhooks/one.example.com/clientConfig/caBundle",
			"Deployment.apps shop/rotors, field /spec/template/metadata/annotations/checksum~1webhook (checksum)",
		}},
		"a password":              {secret("stringData", "{{ randAlphaNum 20 | quote }}"), []string{"Secret shop/a, field /stringData/k"}},
		"the day in a Secret":     {secret("data", `{{ now | date "02" | b64enc }}`), []string{"Secret shop/a, field /data/k"}},
		"the CA of an APIService": {"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: a}\nspec: {caBundle: {{ randAlphaNum 20 }}}\n", []string{"APIService.apiregistration.k8s.io a, field /spec/caBundle"}},
		"the CA of a conversion":  {strings.Replace(definition, "  scope", "  conversion: {webhook: {clientConfig: {caBundle: {{ randAlphaNum 20 }}}}}\n  scope", 1), []string{"CustomResourceDefinition.apiextensions.k8s.io widgets.example.com, field /spec/conversion/webhook/clientConfig/caBundle"}},
		"the CAs of two webhooks with one name": {
			"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: a}\nwebhooks:\n" + strings.Repeat("- {name: a, clientConfig: {caBundle: {{ randAlphaNum 20 }}}}\n", 2),
			[]string{
				"MutatingWebhookConfiguration.admissionregistration.k8s.io a, field /webhooks/0/clientConfig/caBundle",
				"MutatingWebhookConfiguration.admissionregistration.k8s.io a, field /webhooks/1/clientConfig/caBundle",
			},
		},
		"a hook with a random name": {
			"apiVersion: batch/v1\nkind: Job\nmetadata: {name: 'a-{{ randNumeric 9 }}', annotations: {helm.sh/hook: pre-install}}\n", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(t.Context(), input(with(files{"templates/a.yaml": c.text})))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, fields(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			in := input(with(files{"templates/a.yaml": c.text}))
			in.GeneratedValues = hubv1.ChartGeneratedRefuse
			if _, err := Render(t.Context(), in); errors.Is(err, ErrNonDeterministic) != (c.want != nil) {
				t.Errorf("with Refuse: %v", err)
			}
		})
	}
}

func TestRenderRefusesGeneratedValuesElsewhere(t *testing.T) {
	random := "{{ randAlphaNum 20 }}"
	for name, c := range map[string]struct{ text, where string }{
		"a key of a Secret":                     {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a" + random + ": YQ==}\n", "Secret a, field .data."},
		"the type of a Secret":                  {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ntype: " + random + "\n", "field .type"},
		"a Secret of another group":             {"apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: " + random + "}\n", "field .data.a"},
		"a number in a Secret":                  {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: 1{{ randNumeric 9 }}}\n", "field .data.a"},
		"a caBundle of another kind":            {"apiVersion: example.com/v1\nkind: Webhook\nmetadata: {name: a}\nspec: {caBundle: " + random + "}\n", "field .spec.caBundle"},
		"a checksum of nothing that is kept":    {"apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {roll: {{ randAlphaNum 5 | sha256sum }}}}\n", "field .metadata.annotations.roll"},
		"an annotation that is no checksum":     {authority + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {roll: " + random + "}}\n", "field .metadata.annotations.roll"},
		"a hook that is one in some years only": {"apiVersion: v1\nkind: Pod\nmetadata: {name: a{{ if gt (now | date \"2006\" | int) 2036 }}, annotations: {helm.sh/hook: test}{{ end }}}\n", "field .metadata.annotations"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(t.Context(), input(with(files{"templates/a.yaml": c.text})))
			if !errors.Is(err, ErrNonDeterministic) || !strings.Contains(err.Error(), c.where) {
				t.Errorf("got %v, want %s", err, c.where)
			}
		})
	}
}

// keep renders a template with values, and puts kept values into the objects.
func keep(t *testing.T, template string, values map[string]any, kept Kept) (Rendered, Kept, error) {
	t.Helper()
	in := input(with(files{"templates/a.yaml": template}))
	in.Values = []map[string]any{values}
	out, err := Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	next, err := out.Keep(kept)
	return out, next, err
}

func at(t *testing.T, r Rendered, kind, path string) string {
	t.Helper()
	for _, o := range r.Objects {
		if o.GetKind() == kind {
			if value, has := valueAt(o, path); has {
				return value
			}
		}
	}
	t.Fatalf("no %s has the field %s", kind, path)
	return ""
}

const bundlePath, checksumPath = "/webhooks/one.example.com/clientConfig/caBundle", "/spec/template/metadata/annotations/checksum~1webhook"

func TestKeptValuesAreUsedAgain(t *testing.T) {
	first, kept, err := keep(t, authority, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) != 4 {
		t.Fatalf("%d values are kept", len(kept))
	}
	if at(t, first, "Secret", "/data/ca.crt") != at(t, first, "ValidatingWebhookConfiguration", bundlePath) {
		t.Error("the CA bundle is not the CA of the Secret")
	}
	again, same, err := keep(t, authority, nil, kept)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(kept, same); diff != "" {
		t.Errorf("the kept values changed:\n%s", diff)
	}
	if diff := cmp.Diff(first.Objects, again.Objects); diff != "" {
		t.Errorf("the objects differ:\n%s", diff)
	}

	t.Run("a second webhook gets the CA of the first", func(t *testing.T) {
		got, next, err := keep(t, authority, map[string]any{"webhooks": []any{"zero", "one"}}, kept)
		if err != nil {
			t.Fatal(err)
		}
		if len(next) != 5 || at(t, got, "ValidatingWebhookConfiguration", "/webhooks/zero.example.com/clientConfig/caBundle") != at(t, first, "Secret", "/data/ca.crt") {
			t.Errorf("%d values are kept", len(next))
		}
		if _, back, err := keep(t, authority, nil, next); err != nil || len(back) != 5 {
			t.Errorf("after a return to one webhook, %d values are kept: %v", len(back), err)
		}
	})
	t.Run("a checksum changes with other keys of the Secret, and only then", func(t *testing.T) {
		other, _, err := keep(t, authority, map[string]any{"fixed": "b"}, kept)
		if err != nil {
			t.Fatal(err)
		}
		is := at(t, first, "Deployment", checksumPath)
		if !isDigest(is) || is != at(t, again, "Deployment", checksumPath) || is == at(t, other, "Deployment", checksumPath) {
			t.Errorf("the checksums are %s, %s and %s", is, at(t, again, "Deployment", checksumPath), at(t, other, "Deployment", checksumPath))
		}
	})
	t.Run("an object that the chart no longer has keeps its values for a return", func(t *testing.T) {
		none, next, err := keep(t, configMap("a", "x"), nil, kept)
		if err != nil || len(none.Objects) != 1 {
			t.Fatal(err)
		}
		if diff := cmp.Diff(kept, next); diff != "" {
			t.Errorf("the kept values changed:\n%s", diff)
		}
	})
	t.Run("the values of earlier objects can be kept", func(t *testing.T) {
		fresh, _, _ := keep(t, authority, nil, nil)
		byName := func(id hubv1.ObjectIdentity) *unstructured.Unstructured {
			i := slices.IndexFunc(first.Objects, func(o *unstructured.Unstructured) bool { return hubv1.IdentityOf(o) == id })
			if i < 0 {
				return nil
			}
			return first.Objects[i]
		}
		found, complete := fresh.ValuesIn(byName)
		if diff := cmp.Diff(kept, found); diff != "" || !complete {
			t.Errorf("complete is %v:\n%s", complete, diff)
		}
		_, complete = fresh.ValuesIn(func(id hubv1.ObjectIdentity) *unstructured.Unstructured {
			if id.Kind == "Secret" {
				return nil
			}
			return byName(id)
		})
		if complete {
			t.Error("without the Secret, the values are complete")
		}
	})
	t.Run("the certificate that ends first is known", func(t *testing.T) {
		first, at, found := again.FirstExpiry(kept)
		if days := time.Until(at).Hours() / 24; !found || first.Path != "/data/tls.crt" || days < 89 || days > 91 {
			t.Errorf("%v: %s ends at %s", found, first.Path, at)
		}
		nonsense := Rendered{Generated: []GeneratedField{{Path: "/data/a"}, {Path: "/stringData/b"}}}
		if _, _, found := nonsense.FirstExpiry(Kept{{Path: "/data/a", Value: base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"))}, {Path: "/stringData/b", Value: "x"}}); found {
			t.Error("a nonsense certificate ends")
		}
		if first, _, found := (&Rendered{}).FirstExpiry(kept); found {
			t.Errorf("%s ends, but the chart no longer has it", first)
		}
	})
}

func TestOtherGeneratedFieldsThanTheKeptOnesAreRefused(t *testing.T) {
	secret := func(name, value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {k: '" + value + "'}\n---\n"
	}
	random := "{{ randAlphaNum 20 }}"
	shared := `{{ $x := randAlphaNum 20 }}` + secret("a", "{{ $x }}") + secret("b", "{{ $x }}")
	for name, c := range map[string]struct{ before, after, wants string }{
		"a password more":                           {secret("a", random), secret("a", random) + secret("b", random), "Secret shop/b, field /stringData/k is generated, but has no kept value"},
		"a value that is now set":                   {secret("a", random) + secret("b", random), secret("a", random) + secret("b", "fixed"), "Secret shop/b, field /stringData/k has a kept value, but the chart no longer generates it"},
		"another Secret":                            {secret("a", random), secret("b", random), "Secret shop/b, field /stringData/k is generated, but has no kept value"},
		"two values that are now one":               {secret("a", random) + secret("b", random), shared, "Secret shop/b, field /stringData/k has the same generated value as another field, but their kept values differ"},
		"one value that is now two":                 {shared, secret("a", random) + secret("b", random), ""},
		"a password less":                           {secret("a", random) + secret("b", random), secret("a", random), ""},
		"a value that is now set to the kept value": {secret("a", random), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, kept, err := keep(t, c.before, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.after == "" {
				c.after = secret("a", kept[0].Value)
			}
			_, _, err = keep(t, c.after, nil, kept)
			if (err == nil) != (c.wants == "") || err != nil && (!errors.Is(err, ErrValuesWouldChange) || !strings.Contains(err.Error(), c.wants)) {
				t.Errorf("got %v, want %s", err, c.wants)
			}
			for _, value := range kept {
				if err != nil && strings.Contains(err.Error(), value.Value) {
					t.Errorf("the error has a value: %v", err)
				}
			}
		})
	}
}

func TestTheCAOfAWebhookMovesWithIt(t *testing.T) {
	webhooks := func(first, second string) string {
		text := `{{- $a := genCA "a" 365 }}{{- $b := genCA "b" 365 }}
apiVersion: v1
kind: Secret
metadata: {name: servers}
stringData: {a.crt: {{ (genSignedCert "a" nil (list) 90 $a).Cert | quote }}, b.crt: {{ (genSignedCert "b" nil (list) 90 $b).Cert | quote }}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: servers}
webhooks:
`
		for _, name := range []string{first, second} {
			text += "- {name: " + name + ".example.com, clientConfig: {caBundle: {{ $" + name + ".Cert | b64enc }}}}\n"
		}
		return text
	}
	const path = "/webhooks/%s.example.com/clientConfig/caBundle"
	first, kept, err := keep(t, webhooks("a", "b"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := keep(t, webhooks("b", "a"), nil, kept)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		path := fmt.Sprintf(path, name)
		if at(t, first, "ValidatingWebhookConfiguration", path) != at(t, second, "ValidatingWebhookConfiguration", path) {
			t.Errorf("webhook %s has the CA of another one", name)
		}
	}
}

// A drawn chart has Secrets whose fields share some generated values, in a first and in a second version.
func TestKeepingIsStableForDrawnCharts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.SliceOfNDistinct(rapid.IntRange(0, 5), 1, 6, rapid.ID[int]).Draw(t, "fields")
		draw := func(label string) (Rendered, map[string]string) {
			var r Rendered
			values := map[string]string{}
			for _, f := range fields {
				name := fmt.Sprintf("s%d", f)
				value := fmt.Sprintf("%s%d", label, rapid.IntRange(0, 3).Draw(t, label))
				o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"k": value}}}
				o.SetName(name)
				r.Objects = append(r.Objects, o)
				r.Generated = append(r.Generated, GeneratedField{Object: hubv1.IdentityOf(o), Path: "/stringData/k"})
				values[name] = value
			}
			return r, values
		}
		first, values := draw("a")
		kept, err := first.Keep(nil)
		if err != nil || len(kept) != len(fields) {
			t.Fatalf("keeping %d of %d: %v", len(kept), len(fields), err)
		}
		second, _ := draw("b")
		next, err := second.Keep(kept)
		if err != nil {
			return // two kept values became one, which the table test shows
		}
		if diff := cmp.Diff(kept, next); diff != "" {
			t.Fatalf("the kept values changed:\n%s", diff)
		}
		for _, o := range second.Objects {
			if is, _ := valueAt(o, "/stringData/k"); is != values[o.GetName()] {
				t.Fatalf("%s has %q, and %q is kept", o.GetName(), is, values[o.GetName()])
			}
		}
	})
}
