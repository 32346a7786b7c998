package overrides_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// owned returns an object with these entries of managedFields: pairs of an operation and the owned fields. An operation
// may have the subresource after a slash, and the API version after a space. kubectl is an Update by kubectl apply.
func owned(t *testing.T, object string, entries ...string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
		t.Fatal(err)
	}
	var list []any
	for pair := range slices.Chunk(entries, 2) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(pair[1]), &fields); err != nil {
			t.Fatal(err)
		}
		operation, version, _ := strings.Cut(pair[0], " ")
		operation, subresource, _ := strings.Cut(operation, "/")
		manager := "somebody"
		if operation == "kubectl" {
			manager, operation = "kubectl-client-side-apply", "Update"
		}
		entry := map[string]any{
			"manager": manager, "operation": operation, "apiVersion": u.GetAPIVersion(), "time": "2026-11-28T00:00:00Z",
			"fieldsType": "FieldsV1", "fieldsV1": fields,
		}
		if version != "" {
			entry["apiVersion"] = version
		}
		if subresource != "" {
			entry["subresource"] = subresource
		}
		list = append(list, entry)
	}
	if list != nil {
		u.Object["metadata"].(map[string]any)["managedFields"] = list
	}
	return u
}

func applied(t *testing.T, u *unstructured.Unstructured, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(raw)})
	return u
}

const (
	service = `{apiVersion: v1, kind: Service, metadata: {name: edge, namespace: shop}, spec: {type: NodePort, clusterIP: 10.0.0.1,
  clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, selector: {app: edge}, sessionAffinity: None,
  ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30080}]}}`
	job    = `{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {suspend: false, template: {spec: {restartPolicy: Never}}}}`
	claim  = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: uploads}, spec: {accessModes: [ReadWriteOnce], storageClassName: standard}}`
	policy = `{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: gpu}, spec: {cdi: {enabled: true, default: false}, extra: {a: {b: 1}}}}`

	appliesAnnotation = `"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}`
)

func TestOnlyWhatClientsHaveSetIsSent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		object *unstructured.Unstructured
		want   []string // the fields that are left out
	}{
		"an object without managedFields is sent as it is": {owned(t, service), nil},
		"a port and address families that the API server chose stay on the hub": {
			owned(t, service, "Update", `{"f:spec":{"f:type":{},"f:selector":{},"f:sessionAffinity":{},"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}}}}`),
			[]string{"/spec/ipFamilies", "/spec/ipFamilyPolicy", "/spec/ports/0/nodePort"},
		},
		"a port that a user wrote is sent": {
			owned(t, service, "Apply", `{"f:spec":{"f:type":{},"f:selector":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:targetPort":{},"f:nodePort":{}}}}}`),
			[]string{"/spec/ipFamilies", "/spec/ipFamilyPolicy", "/spec/sessionAffinity"},
		},
		"a Service that a client read and created anew leaves the address families": {
			owned(t, service, "Update", `{"f:spec":{"f:type":{},"f:clusterIP":{},"f:clusterIPs":{},"f:ipFamilies":{},"f:ipFamilyPolicy":{},"f:selector":{},"f:sessionAffinity":{},"f:ports":{}}}`),
			[]string{"/spec/ipFamilies", "/spec/ipFamilyPolicy"},
		},
		"a storage class that the API server filled in stays on the hub": {
			owned(t, claim, "Apply", `{"f:spec":{"f:accessModes":{}}}`), []string{"/spec/storageClassName"},
		},
		"a storage class that a user wrote is sent": {
			owned(t, claim, "Apply", `{"f:spec":{"f:accessModes":{},"f:storageClassName":{}}}`), nil,
		},
		"a Job that a create has not suspended leaves that to the cluster": {
			owned(t, job, "Update", `{"f:spec":{"f:suspend":{},"f:template":{"f:spec":{"f:restartPolicy":{}}}}}`), []string{"/spec/suspend"},
		},
		"a Job that a user wants to run is sent so": {
			owned(t, job, "Apply", `{"f:spec":{"f:suspend":{},"f:template":{"f:spec":{"f:restartPolicy":{}}}}}`), nil,
		},
		"a default that kubectl apply has created is no wish": {
			applied(t, owned(t, job, "kubectl", `{`+appliesAnnotation+`,"f:spec":{"f:suspend":{},"f:template":{"f:spec":{"f:restartPolicy":{}}}}}`),
				`{spec: {template: {spec: {restartPolicy: Never}}}}`), []string{"/spec/suspend"},
		},
		"a value in the file of kubectl apply is a wish": {
			applied(t, owned(t, job, "kubectl", `{`+appliesAnnotation+`,"f:spec":{"f:suspend":{},"f:template":{"f:spec":{"f:restartPolicy":{}}}}}`),
				`{spec: {suspend: false, template: {spec: {restartPolicy: Never}}}}`), nil,
		},
		"a value in the file of kubectl apply is a wish, whoever has created the object": {
			applied(t, owned(t, job, "Update", `{"f:spec":{"f:suspend":{},"f:template":{"f:spec":{"f:restartPolicy":{}}}}}`, "kubectl", `{`+appliesAnnotation+`}`),
				`{spec: {suspend: false, template: {spec: {restartPolicy: Never}}}}`), nil,
		},
		"a client that sends an object with the annotation of another one has set all its fields": {
			applied(t, owned(t, claim, "Update", `{`+appliesAnnotation+`,"f:spec":{"f:accessModes":{},"f:storageClassName":{}}}`), `{spec: {accessModes: [ReadWriteOnce]}}`), nil,
		},
		"a Secret is sent as a whole, because nobody owns what the API server made of stringData": {
			owned(t, `{apiVersion: v1, kind: Secret, metadata: {name: s}, type: Opaque, data: {user: dQ==}}`, "Apply", `{"f:stringData":{"f:user":{}}}`), nil,
		},
		"a value that the scale subresource set is sent": {
			owned(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, paused: true}}`,
				"Apply", `{"f:spec":{"f:paused":{}}}`, "Update/scale", `{"f:spec":{"f:replicas":{}}}`), nil,
		},
		"a scale to 0 is sent, although it leaves the replicas without a manager": {
			owned(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, paused: true}}`, "Apply", `{"f:spec":{"f:paused":{}}}`), nil,
		},
		"a number that the scale subresource set after 0 is sent": {
			owned(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 5, paused: true}}`, "Apply", `{"f:spec":{"f:paused":{}}}`), nil,
		},
		"the one replica that the API server filled in stays on the hub": {
			owned(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1, paused: true}}`, "Apply", `{"f:spec":{"f:paused":{}}}`),
			[]string{"/spec/replicas"},
		},
		"the owners of the status own nothing that is sent": {
			owned(t, claim, "Apply", `{"f:spec":{"f:accessModes":{}}}`, "Update/status", `{"f:spec":{"f:storageClassName":{}}}`), []string{"/spec/storageClassName"},
		},
		"paths of another version say nothing about this one": {
			owned(t, claim, "Apply", `{"f:spec":{"f:accessModes":{}}}`, "Update v1beta1", `{"f:spec":{"f:class":{}}}`), nil,
		},
		"a map of which nobody has set anything is left out as one": {
			owned(t, policy, "Apply", `{"f:spec":{"f:cdi":{"f:enabled":{}}}}`), []string{"/spec/cdi/default", "/spec/extra"},
		},
		"a value that is owned as a whole is sent with everything in it": {
			owned(t, policy, "Apply", `{"f:spec":{"f:cdi":{},"f:extra":{}}}`), nil,
		},
		"an item that admission added is left out": {
			owned(t, `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: web, image: a}, {name: proxy, image: b}]}}`,
				"Apply", `{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}}}}`), []string{"/spec/containers/1"},
		},
		"an item of a set that a controller added is left out": {
			owned(t, `{apiVersion: a.b/v1, kind: Set, metadata: {name: s}, spec: {tags: [a, b]}}`, "Apply", `{"f:spec":{"f:tags":{"v:\"a\"":{}}}}`),
			[]string{"/spec/tags/1"},
		},
		"the key of an item stays although nobody owns it": {
			owned(t, `{apiVersion: a.b/v1, kind: Set, metadata: {name: s}, spec: {ports: [{port: 1, protocol: TCP, x: 1}]}}`,
				"Apply", `{"f:spec":{"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`), []string{"/spec/ports/0/x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for form, u := range map[string]*unstructured.Unstructured{"read": tt.object, "kept": kept(tt.object), "kept twice": kept(kept(tt.object))} {
				before := u.DeepCopy()
				prepared, err := overrides.Prepare(u, nil)
				if err != nil {
					t.Fatal(err)
				}
				result, err := prepared.Render(overrides.Cluster{Name: "eu"}, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, result.LeftOut); diff != "" {
					t.Errorf("%s: left out (-want +got):\n%s", form, diff)
				}
				if (result.Whole != nil) != (len(tt.want) > 0) {
					t.Errorf("%s: the whole manifest is %v", form, result.Whole)
				}
				if diff := cmp.Diff(before, u); diff != "" {
					t.Errorf("%s: the object was changed:\n%s", form, diff)
				}
				again, err := overrides.Prepare(prepared.Whole(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(prepared.Manifest(), again.Manifest()); diff != "" {
					t.Errorf("%s: a stored revision is sent otherwise:\n%s", form, diff)
				}
			}
		})
	}
}

// kept returns the object as the hub keeps it.
func kept(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	overrides.KeepOwners(out)
	annotations := out.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	out.SetAnnotations(annotations)
	return out
}

func TestValuesOfRulesAndDivisionsAreSent(t *testing.T) {
	t.Parallel()
	object := owned(t, service, "Apply", `{"f:spec":{"f:type":{},"f:selector":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:targetPort":{}}}}}`)
	twoPorts := owned(t, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: http, port: 80, protocol: TCP, nodePort: 30080}, {name: https, port: 443, protocol: TCP, nodePort: 30443}]}}`,
		"Apply", `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}},"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`)
	for name, tt := range map[string]struct {
		object  *unstructured.Unstructured // object if nil
		rule    string
		divided []overrides.Divided
		want    []string
	}{
		"a rule that removes a field that is left out works as before": {
			rule: `{patches: [{op: remove, path: /spec/ipFamilies}]}`, want: []string{"/spec/ipFamilyPolicy", "/spec/sessionAffinity", "/spec/ports/0/nodePort"},
		},
		"a rule that sets the value of the hub is sent": {
			rule: `{patches: [{op: replace, path: /spec/ipFamilyPolicy, value: SingleStack}]}`, want: []string{"/spec/ipFamilies", "/spec/sessionAffinity", "/spec/ports/0/nodePort"},
		},
		"a merge patch is sent": {
			rule: `{mergePatch: {spec: {ipFamilies: [IPv6]}}}`, want: []string{"/spec/ipFamilyPolicy", "/spec/sessionAffinity", "/spec/ports/0/nodePort"},
		},
		"a rule for another field of the port does not send the port": {
			rule: `{patches: [{op: replace, path: /spec/ports/0/targetPort, value: 9090}]}`,
			want: []string{"/spec/ipFamilies", "/spec/ipFamilyPolicy", "/spec/sessionAffinity", "/spec/ports/0/nodePort"},
		},
		"a port that a rule sets is sent": {
			rule: `{patches: [{op: replace, path: /spec/ports/0/nodePort, value: 30080}]}`, want: []string{"/spec/ipFamilies", "/spec/ipFamilyPolicy", "/spec/sessionAffinity"},
		},
		"an item before the port does not make another item lose its port": {
			rule: `{patches: [{op: add, path: /spec/ports/0, value: {name: first, port: 1, nodePort: 30001}}]}`,
			want: []string{"/spec/ipFamilies", "/spec/ipFamilyPolicy", "/spec/sessionAffinity"},
		},
		"a port of which a rule removes the neighbour stays on the hub": {
			object: twoPorts, rule: `{patches: [{op: remove, path: /spec/ports/0}]}`, want: []string{"/spec/ports/0/nodePort"},
		},
		"a number that is divided is sent": {
			divided: []overrides.Divided{{Path: "/spec/sessionAffinity", Number: 2}}, want: []string{"/spec/ipFamilies", "/spec/ipFamilyPolicy", "/spec/ports/0/nodePort"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var policies []hubv1.OverridePolicyObject
			if tt.rule != "" {
				var rule hubv1.OverrideRule
				if err := yaml.UnmarshalStrict([]byte(tt.rule), &rule); err != nil {
					t.Fatal(err)
				}
				rule.Name = "r"
				p := &hubv1.OverridePolicy{Spec: hubv1.OverridePolicySpec{Rules: []hubv1.OverrideRule{rule}}}
				p.Namespace, p.Name = "shop", "p"
				policies = append(policies, p)
			}
			if tt.object == nil {
				tt.object = object
			}
			prepared, err := overrides.Prepare(tt.object, nil)
			if err != nil {
				t.Fatal(err)
			}
			result, err := prepared.Render(overrides.Cluster{Name: "eu"}, policies, tt.divided)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(tt.want)
			slices.Sort(result.LeftOut)
			if diff := cmp.Diff(tt.want, result.LeftOut); diff != "" {
				t.Errorf("left out (-want +got):\n%s\n%v", diff, result.Manifest.Object)
			}
		})
	}
}

// TestOwnersAreThoseOfTheLibrary compares the fields that are sent with the sets of the library that API servers use.
func TestOwnersAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(2, seed))
		spec := randomMap(random, 0)
		theirs := &fieldpath.Set{}
		leavesOf(map[string]any{"spec": spec}).Iterate(func(p fieldpath.Path) {
			if random.IntN(3) > 0 {
				theirs.Insert(p.Copy())
			}
		})
		if theirs.Empty() {
			continue
		}
		raw, err := theirs.ToJSON()
		if err != nil {
			t.Fatal(err)
		}
		u := owned(t, `{apiVersion: a.b/v1, kind: Any, metadata: {name: any}}`, "Apply", string(raw))
		u.Object["spec"] = spec
		prepared, err := overrides.Prepare(kept(u), nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := &fieldpath.Set{}
		if left, ok := prepared.Manifest().Object["spec"]; ok {
			sent = leavesOf(map[string]any{"spec": left})
		}
		var lacks, more []string
		theirs.Iterate(func(p fieldpath.Path) {
			if !sent.Has(p) {
				lacks = append(lacks, p.String())
			}
		})
		sent.Iterate(func(p fieldpath.Path) {
			if !theirs.Has(p) && !isKey(p) {
				more = append(more, p.String())
			}
		})
		if len(lacks) > 0 || len(more) > 0 {
			t.Fatalf("seed %d: owned and not sent: %v; sent and not owned: %v\nowned %s\nspec %v", seed, lacks, more, raw, spec)
		}
	}
}

func leavesOf(object map[string]any) *fieldpath.Set {
	return fieldpath.SetFromValue(value.NewValueInterface(object))
}

// isKey reports whether the path leads to the key field of an item. The key of an item with owned fields is sent.
func isKey(p fieldpath.Path) bool {
	last := p[len(p)-1]
	return len(p) > 1 && p[len(p)-2].Key != nil && last.FieldName != nil && *last.FieldName == "name"
}

// randomMap returns a map with scalars, maps, and lists of items with names.
func randomMap(random *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for i := range 1 + random.IntN(4) {
		name := fmt.Sprint("f", i)
		switch n := random.IntN(6); {
		case depth > 3 || n < 3:
			out[name] = []any{int64(i), "text", true}[random.IntN(3)]
		case n < 5:
			out[name] = randomMap(random, depth+1)
		default:
			var list []any
			for j := range 1 + random.IntN(3) {
				item := randomMap(random, depth+1)
				item["name"] = fmt.Sprint("item", j)
				list = append(list, item)
			}
			out[name] = list
		}
	}
	return out
}
