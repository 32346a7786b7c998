package gitops

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// inGit has the files of a folder in Git, which a GitOps tool applies.
const inGit = `
apiVersion: test.hanse.dev/v1
kind: Widget
metadata:
  name: web
  labels: {app: web}
  annotations: {argocd.argoproj.io/tracking-id: "shop:test.hanse.dev/Widget:web"}
spec: {replicas: 3, size: small, tags: [a, b]}
---
apiVersion: hanse.dev/v1alpha1
kind: Placement
metadata: {name: widgets}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}]
  clusters: {labelSelector: {}}
  spread: {preferences: [{weight: 5, labelSelector: {matchLabels: {tier: test}}}]}
  deletion: {whenUnselected: Orphan}
---
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {name: by-cluster}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget}]
  rules:
  - {name: more, patches: [{op: replace, path: /spec/replicas, value: 5}]}
  - {name: eu, clusters: {names: [eu]}, labels: {where: eu}, mergePatch: {spec: {note: here}}}
`

// tools has, for each GitOps tool, the arguments of kubectl that apply objects as the tool does.
var tools = map[string][]string{
	"argo-cd-client-side": {"apply", "--field-manager=argocd-controller"},
	"argo-cd-server-side": {"apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller"},
	"flux":                {"apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller"},
}

// TestASyncOfGitOpsMakesNoNoise applies the same files repeatedly while a hub writes the objects' statuses. The
// repeated syncs must not change an object.
func TestASyncOfGitOpsMakesNoNoise(t *testing.T) {
	apiserver.Needed(t)
	ctrl.SetLogger(logr.Discard())
	w := startWorld(t)
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		t.Run(tool, func(t *testing.T) {
			s := &synced{world: w, T: t, tool: tools[tool], namespace: tool}
			must(t, s.hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tool}}))
			s.sync(inGit)
			s.settles()
			s.syncsWithoutChange()
			s.showsNoDifference()
			s.outlastsASuspension()

			s.sync(strings.Replace(inGit, "size: small", "size: large", 1))
			s.arrivesOnMember("large")
		})
	}
	t.Run("null-in-a-rule", func(t *testing.T) {
		for tool, kept := range map[string]bool{"argo-cd-client-side": false, "argo-cd-server-side": true, "flux": true} {
			t.Run(tool, func(t *testing.T) { (&synced{world: w, T: t, tool: tools[tool], namespace: tool}).updatesNull(kept) })
		}
	})
}

// synced is a namespace of the hub into which a tool applies the files from Git.
type synced struct {
	*world
	*testing.T
	tool      []string
	namespace string
}

// sync applies files and returns the output of kubectl.
func (s *synced) sync(files string) string {
	s.Helper()
	args := append([]string{"--kubeconfig", s.kubeconfig, "--cache-dir", s.TempDir(), "-n", s.namespace}, s.tool...)
	kubectl := exec.CommandContext(s.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append(args, "-f", "-")...)
	kubectl.Stdin = strings.NewReader(files)
	var faults bytes.Buffer
	kubectl.Stderr = &faults
	out, err := kubectl.Output()
	if err != nil {
		s.Fatalf("%s: %v %s", s.tool, err, &faults)
	}
	return string(out)
}

// files returns the objects in Git, with the namespace of the tool.
func (s *synced) files() []*unstructured.Unstructured {
	s.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(inGit, "\n---\n") {
		text, err := yaml.YAMLToJSON([]byte(document))
		must(s.T, err)
		o := &unstructured.Unstructured{}
		must(s.T, o.UnmarshalJSON(text)) // with the types of numbers that the server uses
		o.SetNamespace(s.namespace)
		out = append(out, o)
	}
	return out
}

// live returns an object as it is on the hub.
func (s *synced) live(o *unstructured.Unstructured) *unstructured.Unstructured {
	s.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(o.GroupVersionKind())
	must(s.T, s.hub.Get(s.Context(), client.ObjectKeyFromObject(o), out))
	return out
}

// settles writes the status of the copy on the member. It then waits until the hub has merged the status and kstatus
// reports the hub object as current.
func (s *synced) settles() {
	s.Helper()
	eventually(s.T, func() error {
		if err := s.operate(); err != nil {
			return err
		}
		for _, file := range s.files() {
			o := s.live(file)
			read, err := status.Compute(o)
			if err != nil || read.Status != status.CurrentStatus {
				return fmt.Errorf("%s is %v, %w: %v", o.GetKind(), read, err, o.Object["status"])
			}
			ready, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
			if o.GetKind() == "Widget" && (ready != 5 || !managedBy(o, "hanse-status")) {
				return fmt.Errorf("the hub has not merged the status: %v", o.Object["status"])
			}
		}
		return nil
	})
}

// copied returns the copy on the member.
func (s *synced) copied() (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion("test.hanse.dev/v1")
	out.SetKind("Widget")
	return out, s.member.Get(s.Context(), types.NamespacedName{Namespace: s.namespace, Name: "web"}, out)
}

// operate writes the status of the copy, as the copy's operator would.
func (s *synced) operate() error {
	copied, err := s.copied()
	if err != nil {
		return fmt.Errorf("reading the copy: %w", err)
	}
	replicas, _, _ := unstructured.NestedInt64(copied.Object, "spec", "replicas")
	state := map[string]any{"observedGeneration": copied.GetGeneration(), "replicas": replicas, "readyReplicas": replicas, "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Up", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": copied.GetGeneration(),
	}}}
	if equality.Semantic.DeepEqual(copied.Object["status"], state) {
		return nil
	}
	copied.Object["status"] = state
	return s.member.Status().Update(s.Context(), copied)
}

func managedBy(o client.Object, manager string) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// syncsWithoutChange syncs until the hub has written nothing between two syncs, and checks that the last sync changed
// no object.
func (s *synced) syncsWithoutChange() {
	s.Helper()
	versions := func() (out []string) {
		for _, file := range s.files() {
			o := s.live(file)
			out = append(out, fmt.Sprintf("%s generation %d version %s", o.GetKind(), o.GetGeneration(), o.GetResourceVersion()))
		}
		return out
	}
	eventually(s.T, func() error {
		before := versions()
		out := s.sync(inGit)
		if !slices.Contains(s.tool, "--server-side") && strings.Count(out, " unchanged\n") != len(before) {
			return fmt.Errorf("kubectl says:\n%s", out)
		}
		if diff := cmp.Diff(before, versions()); diff != "" {
			return errors.New("a sync changes what is there:\n" + diff)
		}
		return nil
	})
}

// showsNoDifference compares each file with the live object. It makes two comparisons: one after the API server has
// completed the file, and the three-way comparison of Argo CD.
func (s *synced) showsNoDifference() {
	s.Helper()
	for _, file := range s.files() {
		live := s.live(file)
		if paths := differing("", file.Object, live.Object); len(paths) > 0 {
			s.Errorf("Argo CD would show %s of %s as different", paths, file.GetKind())
		}
		completed := file.DeepCopy()
		completed.SetName(file.GetName() + "-again")
		must(s.T, s.hub.Create(s.Context(), completed, client.DryRunAll))
		completed.SetName(file.GetName())
		if diff := cmp.Diff(declared(completed), declared(live), cmpopts.EquateEmpty()); diff != "" {
			s.Errorf("%s (-file with defaults +live):\n%s", file.GetKind(), diff)
		}
	}
}

// differing returns the paths at which a live object differs from a file. It compares only fields that the file has,
// and compares a list as a whole.
func differing(path string, file, live any) (paths []string) {
	fields, isMap := file.(map[string]any)
	if !isMap {
		if !equality.Semantic.DeepEqual(file, live) {
			return []string{path}
		}
		return nil
	}
	has, _ := live.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		paths = append(paths, differing(path+"."+name, fields[name], has[name])...)
	}
	return paths
}

// declared returns an object without its status and without the metadata that the API server sets.
func declared(o *unstructured.Unstructured) map[string]any {
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return map[string]any{
		"kind": o.GetKind(), "name": o.GetName(), "labels": o.GetLabels(), "annotations": annotations, "finalizers": o.GetFinalizers(), "spec": o.Object["spec"],
	}
}

// outlastsASuspension suspends a placement as hansectl does, syncs, and resumes the placement.
func (s *synced) outlastsASuspension() {
	s.Helper()
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "widgets"}}
	suspend := func(patch string) {
		must(s.T, s.hub.Patch(s.Context(), p, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("hansectl")))
	}
	suspend(`{"spec":{"suspend":{"clusterSelector":{"matchLabels":{"tier":"test"}}}}}`)
	s.sync(inGit)
	must(s.T, s.hub.Get(s.Context(), client.ObjectKeyFromObject(p), p))
	if p.Spec.Suspend.ClusterSelector == nil {
		s.Error("a sync ends a suspension that Git does not know")
	}
	suspend(`{"spec":{"suspend":{"clusterSelector":null}}}`)
}

func (s *synced) arrivesOnMember(size string) {
	s.Helper()
	eventually(s.T, func() error {
		copied, err := s.copied()
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(copied.Object, "spec", "size"); got != size {
			return fmt.Errorf("the copy has size %s", got)
		}
		return nil
	})
}

// updatesNull changes a policy in which a rule has a null value. kept is true if the tool preserves the null.
func (s *synced) updatesNull(kept bool) {
	s.Helper()
	const file = `
apiVersion: hanse.dev/v1alpha1
kind: OverridePolicy
metadata: {name: nulls}
spec:
  resourceSelectors: [{apiGroup: test.hanse.dev, kind: Widget, name: none}]
  rules: [{name: r, mergePatch: {spec: {note: null, size: small}}}]
`
	s.sync(file)
	s.sync(strings.Replace(file, "size: small", "size: large", 1))
	var p hubv1.OverridePolicy
	must(s.T, s.hub.Get(s.Context(), types.NamespacedName{Namespace: s.namespace, Name: "nulls"}, &p))
	want := `{"spec":{"size":"large"}}`
	if kept {
		want = `{"spec":{"note":null,"size":"large"}}`
	}
	if got := string(p.Spec.Rules[0].MergePatch.Raw); got != want {
		s.Errorf("the rule is %s, want %s", got, want)
	}
}
