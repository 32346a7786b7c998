package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
	"github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// filled reads an object from testdata.
func filled(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "filled", name+".yaml"))
	must(t, err)
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(raw, &u.Object))
	return u
}

// forMember returns the definition of a member: without the field spec.cdi.default, or with this default.
func forMember(t *testing.T, fallback any) *unstructured.Unstructured {
	t.Helper()
	u := filled(t, "definition")
	versions, _, err := unstructured.NestedSlice(u.Object, "spec", "versions")
	must(t, err)
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "cdi", "properties", "default"}
	if version := versions[0].(map[string]any); fallback == nil {
		unstructured.RemoveNestedField(version, path...)
	} else {
		must(t, unstructured.SetNestedField(version, fallback, append(path, "default")...))
	}
	must(t, unstructured.SetNestedSlice(u.Object, versions, "spec", "versions"))
	return u
}

func TestDefaultsOfTheHubAreNotSentToMembers(t *testing.T) {
	apiserver.Needed(t)
	ctrl.SetLogger(logr.Discard())
	w := startHub(t)
	class := func(name string) *storagev1.StorageClass {
		return &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, Provisioner: "example.com/" + name,
		}
	}
	w.create(class("standard"))
	must(t, w.member.Create(t.Context(), class("fast")))
	w.create(filled(t, "definition"))
	must(t, w.member.Create(t.Context(), forMember(t, nil)))
	w.served(filled(t, "default"))
	w.join()

	edge := filled(t, "node-port")
	w.create(edge)
	port := edge.Object["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["nodePort"].(int64)
	must(t, w.member.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}))
	must(t, w.member.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "taken"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"a": "b"}, Ports: []corev1.ServicePort{{
			Port: 1, TargetPort: intstr.FromInt32(1), NodePort: int32(port),
		}}},
	}))
	w.create(filled(t, "storage-class"))
	w.create(filled(t, "default"))
	w.create(&hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{Kind: "Service"}, {Kind: "PersistentVolumeClaim"}},
		Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
	}})
	w.create(&hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: hubv1.ClusterPlacementSpec{PlacementSpec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "nvidia.com", Kind: "ClusterPolicy"}},
		Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
	}}})

	w.copies(filled(t, "node-port"), "the Service gets a port of the member", func(u *unstructured.Unstructured) error {
		ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
		if got := ports[0].(map[string]any)["nodePort"]; got == port || got == nil {
			return fmt.Errorf("the port %v", got)
		}
		return notOwned(u, "f:nodePort", "f:ipFamilies", "f:ipFamilyPolicy")
	})
	w.copies(filled(t, "storage-class"), "the claim gets the class of the member", func(u *unstructured.Unstructured) error {
		if got, _, _ := unstructured.NestedString(u.Object, "spec", "storageClassName"); got != "fast" {
			return fmt.Errorf("the class %q", got)
		}
		return notOwned(u, "f:storageClassName")
	})
	w.copies(filled(t, "default"), "a member without the field gets the object", func(u *unstructured.Unstructured) error {
		if cdi, _, _ := unstructured.NestedMap(u.Object, "spec", "cdi"); !cmp.Equal(cdi, map[string]any{"enabled": true}) {
			return fmt.Errorf("cdi %v", cdi)
		}
		return nil
	})

	// A port and a class that the user wrote still travel.
	own, wanted := filled(t, "node-port"), int64(30999)
	own.SetName("own")
	ports, _, _ := unstructured.NestedSlice(own.Object, "spec", "ports")
	ports[0].(map[string]any)["nodePort"] = wanted
	must(t, unstructured.SetNestedSlice(own.Object, ports, "spec", "ports"))
	w.create(own)
	w.copies(own, "a port that the user wrote travels", func(u *unstructured.Unstructured) error {
		ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
		if got := ports[0].(map[string]any)["nodePort"]; got != wanted {
			return fmt.Errorf("the port %v", got)
		}
		return nil
	})
	slow := filled(t, "storage-class")
	slow.SetName("slow")
	must(t, unstructured.SetNestedField(slow.Object, "slow", "spec", "storageClassName"))
	w.create(slow)
	w.copies(slow, "a class that the user wrote travels", func(u *unstructured.Unstructured) error {
		if got, _, _ := unstructured.NestedString(u.Object, "spec", "storageClassName"); got != "slow" {
			return fmt.Errorf("the class %q", got)
		}
		return nil
	})

	// The member's definition gets the field, with another default.
	definition := filled(t, "definition")
	must(t, w.member.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	definition.Object["spec"] = forMember(t, true).Object["spec"]
	must(t, w.member.Update(t.Context(), definition))
	another := filled(t, "default")
	another.SetName("another")
	w.create(another)
	w.copies(another, "a member with another default has its own", func(u *unstructured.Unstructured) error {
		if got, _, _ := unstructured.NestedBool(u.Object, "spec", "cdi", "default"); !got {
			return fmt.Errorf("cdi.default is false")
		}
		return nil
	})

	// A value that the user wrote is refused by a member that lacks the field.
	must(t, w.member.Get(t.Context(), client.ObjectKeyFromObject(definition), definition))
	definition.Object["spec"] = forMember(t, nil).Object["spec"]
	must(t, w.member.Update(t.Context(), definition))
	explicit := filled(t, "default")
	explicit.SetName("explicit")
	must(t, unstructured.SetNestedField(explicit.Object, false, "spec", "cdi", "default"))
	raw, err := json.Marshal(explicit.Object)
	must(t, err)
	must(t, w.hub.Patch(t.Context(), explicit, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner("user"), client.ForceOwnership))
	eventually(t, 30*time.Second, func() error {
		key := hubv1.IdentityOf(explicit).BindingKey()
		b := hubv1.NewBinding(key)
		if err := w.hub.Get(t.Context(), key, b); err != nil {
			return err
		}
		if row := b.BindingStatus().Row("eu"); row == nil || row.Reason != hubv1.ReasonFieldsNotServed {
			return fmt.Errorf("the row is %+v", row)
		}
		return nil
	})
}

// served waits until the hub serves the kind of the object.
func (w *world) served(u *unstructured.Unstructured) {
	w.Helper()
	eventually(w.T, 30*time.Second, func() error {
		return w.hub.List(w.Context(), &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind() + "List"}})
	})
}

// copies waits until the member's copy of the object is right.
func (w *world) copies(of *unstructured.Unstructured, what string, right func(*unstructured.Unstructured) error) {
	w.Helper()
	eventually(w.T, 30*time.Second, func() error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(of.GroupVersionKind())
		err := w.member.Get(w.Context(), client.ObjectKeyFromObject(of), u)
		if err == nil {
			err = right(u)
		}
		if err == nil {
			return nil
		}
		key := hubv1.IdentityOf(of).BindingKey()
		b := hubv1.NewBinding(key)
		_ = w.hub.Get(w.Context(), key, b)
		return fmt.Errorf("%s: %w; the rows are %+v", what, err, b.BindingStatus().Clusters)
	})
}

// notOwned returns an error if the hub owns one of the fields of a copy.
func notOwned(u *unstructured.Unstructured, fields ...string) error {
	for _, e := range u.GetManagedFields() {
		for _, f := range fields {
			if e.Manager == hubv1.FieldManager && strings.Contains(string(e.FieldsV1.GetRawBytes()), `"`+f+`"`) {
				return fmt.Errorf("the hub owns %s", f)
			}
		}
	}
	return nil
}

// TestAnUpgradeOfTheHubChangesNoSpec writes copies as a hub does that sends all fields, and then as this hub does: one
// copy in each case, and in the long form 15, which are 210 copies.
func TestAnUpgradeOfTheHubChangesNoSpec(t *testing.T) {
	apiserver.Needed(t)
	config := serve(t, &envtest.Environment{})
	c, err := client.New(config, client.Options{})
	must(t, err)
	for _, ns := range []string{"hub", "member"} {
		must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	must(t, c.Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "standard", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "example.com/standard",
	}))
	must(t, c.Create(t.Context(), forMember(t, true)))
	eventually(t, 30*time.Second, func() error {
		_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: "nvidia.com", Kind: "ClusterPolicy"}, "v1")
		return err
	})
	rest, err := informer.NewRESTClient(config)
	must(t, err)
	resolve := func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		m, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return schema.GroupVersionResource{}, false, err
		}
		return m.Resource, m.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}
	applier := apply.New("eu", false, rest, resolve, "hub", nil, func(schema.GroupVersionKind, *unstructured.Unstructured) {})
	pod := `template: {metadata: {labels: {app: web}}, spec: {restartPolicy: %s, containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]}}`
	workload := `selector: {matchLabels: {app: web}}, ` + fmt.Sprintf(pod, "Always")
	copies := 1
	if os.Getenv("HANSE_LONG") != "" {
		copies = 15
	}
	for name, text := range map[string]string{
		"a Service of type NodePort":    `{apiVersion: v1, kind: Service, metadata: {name: edge}, spec: {type: NodePort, selector: {app: web}, ports: [{port: 80}]}}`,
		"a Service with two ports":      `{apiVersion: v1, kind: Service, metadata: {name: two}, spec: {selector: {app: web}, ports: [{name: a, port: 80}, {name: b, port: 81}]}}`,
		"a claim":                       `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: uploads}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}}}`,
		"a Job":                         `{apiVersion: batch/v1, kind: Job, metadata: {name: once}, spec: {` + fmt.Sprintf(pod, "Never") + `}}`,
		"a Deployment":                  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {` + workload + `}}`,
		"a StatefulSet":                 `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: {serviceName: web, ` + workload + `}}`,
		"an object with other defaults": `{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: gpu}, spec: {cdi: {enabled: true}}}`,
	} {
		for i := range 2 * copies {
			writer := []string{"apply", "create"}[i%2]
			t.Run(fmt.Sprintf("%s by %s %d", name, writer, i/2), func(t *testing.T) {
				u := &unstructured.Unstructured{}
				must(t, yaml.Unmarshal([]byte(text), &u.Object))
				u.SetName(fmt.Sprintf("%s-%s-%d", u.GetName(), writer, i/2))
				if u.GetKind() != "ClusterPolicy" {
					u.SetNamespace("hub")
				}
				if writer == "create" {
					must(t, c.Create(t.Context(), u))
				} else {
					raw, err := json.Marshal(u.Object)
					must(t, err)
					must(t, c.Patch(t.Context(), u, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner("user"), client.ForceOwnership))
				}
				t.Cleanup(func() { // a further Service may get the same port
					must(t, c.Delete(context.WithoutCancel(t.Context()), u))
					must(t, client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), onMember(u))))
				})
				if u.GetKind() == "ClusterPolicy" { // the hub had another default than the member, and both are one server here
					must(t, unstructured.SetNestedField(u.Object, false, "spec", "cdi", "default"))
				}
				overrides.KeepOwners(u)
				prepared, err := overrides.Prepare(u, nil)
				must(t, err)
				result, err := prepared.Render(overrides.Cluster{Name: "eu"}, nil, nil)
				must(t, err)
				if result.Whole == nil {
					result, err = prepared.Leaving([][]string{{"spec", "cdi", "default"}}).Render(overrides.Cluster{Name: "eu"}, nil, nil)
					must(t, err)
				}
				if writer == "apply" && result.Whole == nil {
					t.Fatal("nothing is left out")
				}
				sent, whole := onMember(result.Manifest), result.Manifest
				if result.Whole != nil {
					whole = result.Whole
				}
				whole = onMember(whole)
				if port, ok, _ := unstructured.NestedSlice(whole.Object, "spec", "ports"); ok { // both are one server here, and the port is taken
					for i := range port {
						if p, has := port[i].(map[string]any)["nodePort"].(int64); has {
							port[i].(map[string]any)["nodePort"] = p ^ 1
						}
					}
					must(t, unstructured.SetNestedSlice(whole.Object, port, "spec", "ports"))
				}
				in := member.ApplyIntent{
					Manifest: whole, Owner: hubv1.IdentityOf(whole), OwnerUID: "template", Digest: "all",
					ApplySettings: member.ApplySettings{Adoption: hubv1.AdoptionNever, FieldConflict: hubv1.FieldConflictTake},
				}
				out := applier.Apply(t.Context(), in)
				if out.Applied != metav1.ConditionTrue {
					t.Fatalf("the copy was not written: %+v", out)
				}
				before := onServer(t, c, whole)

				in.Manifest, in.Whole, in.Digest = sent, whole, "few"
				in.Confirmed, in.ConfirmedUID, in.Observed = out.Hash, out.UID, out.ResourceVersion
				in.Mode = hubv1.ApplyReportOnly
				if out := applier.Apply(t.Context(), in); out.Reason != hubv1.ReasonInSync {
					t.Errorf("a report says %s: %s", out.Reason, out.Message)
				}
				in.Mode = hubv1.ApplyEnforce
				if out := applier.Apply(t.Context(), in); out.Applied != metav1.ConditionTrue {
					t.Fatalf("the copy was not written again: %+v", out)
				}
				after := onServer(t, c, whole)
				if diff := cmp.Diff(contentOf(before), contentOf(after)); diff != "" {
					t.Errorf("the content changed (-before +after):\n%s", diff)
				}
				// A Deployment gets a new generation with each change of an annotation, such as that of the digest.
				if before.GetGeneration() != after.GetGeneration() && u.GetKind() != "Deployment" {
					t.Errorf("the generation changed from %d to %d", before.GetGeneration(), after.GetGeneration())
				}
				if _, still := content.Yielded(after, sent, whole); still {
					t.Errorf("the hub owns more than it sends: %v", after.GetManagedFields())
				}
				in.Confirmed = ""
				in.Digest, in.Whole = "again", nil
				in.Observed = after.GetResourceVersion()
				if out := applier.Apply(t.Context(), in); out.Applied != metav1.ConditionTrue {
					t.Fatalf("the copy was not written a third time: %+v", out)
				}
				if diff := cmp.Diff(contentOf(before), contentOf(onServer(t, c, whole))); diff != "" {
					t.Errorf("the content changed with a later write (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// onMember returns the manifest of the copy, which is in another namespace of the same API server, or has another name.
func onMember(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	if u.GetNamespace() != "" {
		out.SetNamespace("member")
	} else {
		out.SetName(u.GetName() + "-copy")
	}
	return out
}

func onServer(t *testing.T, c client.Client, of *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(of.GroupVersionKind())
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(of), u))
	return u
}

func contentOf(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "metadata")
	delete(out, "status")
	return out
}
