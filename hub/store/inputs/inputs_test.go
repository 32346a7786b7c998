package inputs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"}

// hub is an API server with the kind Widget. It records which kinds are read.
type hub struct {
	client.Client
	// refused has the errors of reads, by kind.
	refused map[string]error
	read    map[string]bool
}

func newHub(t *testing.T, objects ...client.Object) *hub {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hubv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{widget.GroupVersion()})
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(widget, meta.RESTScopeNamespace)
	h := &hub{refused: map[string]error{}, read: map[string]bool{}}
	note := func(o runtime.Object) error {
		kind, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(kind.Kind, "List")
		h.read[name] = true
		return h.refused[name]
	}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			return errors.Join(note(o), c.Get(ctx, key, o, options...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return errors.Join(note(list), c.List(ctx, list, options...))
		},
	}).Build()
	return h
}

// forbids makes reads of a kind fail, because the user lacks the right.
func (h *hub) forbids(kind string) {
	h.refused[kind] = apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("the user may not"))
}

// definition returns the definition of Widgets at v1 and v2. The hub reads Widgets at v2.
func definition() *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"}}
	for _, name := range []string{"v1", "v2"} {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.size"}},
		})
	}
	return d
}

// decision is one decision. Each test case changes its inputs.
type decision struct {
	object    *unstructured.Unstructured
	binding   *hubv1.ResourceBinding
	placement *hubv1.Placement
	cluster   *hubv1.MemberCluster
	others    []client.Object
	forbidden []string
	count     func() (map[string]int, error)
}

func newDecision() *decision {
	d := &decision{object: &unstructured.Unstructured{}, others: []client.Object{definition(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "web"}}}}}
	d.object.SetGroupVersionKind(widget)
	d.object.SetNamespace("shop")
	d.object.SetName("web")
	d.binding = bindingOf("web")
	d.placement = &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}
	d.cluster = &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}, Status: hubv1.MemberClusterStatus{
		APIResources: []hubv1.ServedKind{{Group: widget.Group, Kind: widget.Kind, Versions: []string{"v2"}}},
	}}
	d.count = func() (map[string]int, error) { return map[string]int{"eu": 3}, nil }
	return d
}

func bindingOf(name string, needs ...string) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: widget.GroupVersion().String(), Kind: widget.Kind, Name: name}
	for _, need := range needs {
		b.Spec.References = append(b.Spec.References, hubv1.BindingReference{APIGroup: widget.Group, Kind: widget.Kind, Name: need})
	}
	return b
}

// inputs returns the inputs of the decision, the notes for the user, and the kinds that were read in addition to those
// of every decision.
func (d *decision) inputs(t *testing.T) (in decide.Input, notes, read []string, err error) {
	t.Helper()
	h := newHub(t, append(d.others, d.placement, d.cluster)...)
	for _, kind := range d.forbidden {
		h.forbids(kind)
	}
	reader := Reader{Client: h, Unless: func(err error, consequence string) error {
		if apierrors.IsForbidden(err) {
			notes = append(notes, consequence)
			return nil
		}
		return err
	}, Count: func(context.Context) (map[string]int, error) {
		h.read["counts"] = true
		return d.count()
	}}
	in, err = reader.Read(t.Context(), d.object, d.binding, time.Now())
	for _, kind := range []string{"MemberCluster", "Placement", "ClusterPlacement", "OverridePolicy", "ClusterOverridePolicy", "Namespace"} {
		if !h.read[kind] && err == nil {
			t.Errorf("%ss are not read", kind)
		}
		delete(h.read, kind)
	}
	for kind := range h.read {
		read = append(read, kind)
	}
	slices.Sort(read)
	return in, notes, read, err
}

func scoredBy(weight int32) *hubv1.SpreadPolicy {
	return &hubv1.SpreadPolicy{Scores: []hubv1.WeighedScore{{Name: hubv1.ScoreFewestObjects, Weight: weight}}}
}

func TestOnlyTheInputsThatADecisionNeedsAreRead(t *testing.T) {
	t.Parallel()
	divides := func(d *decision) { d.placement.Spec.Replicas.Type = hubv1.ReplicasDivide }
	serves := func(d *decision, versions ...string) { d.cluster.Status.APIResources[0].Versions = versions }
	bundled := func(d *decision) {
		d.object.SetAnnotations(map[string]string{hubv1.BundleAnnotation: hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "stack"}}.Annotation()})
	}
	referenced := func(d *decision) {
		d.binding.Spec.Referenced = true
		d.others = append(d.others, bindingOf("needs", "web"), bindingOf("needs-another", "other"))
	}
	const definitions = "CustomResourceDefinition"
	for name, tc := range map[string]struct {
		of func(*decision)
		// read are the kinds that are read in addition to those of every decision.
		read, notes []string
		counts      map[string]int
		path        string
		others      []string
		// referrers are the objects that refer to the object. The list is nil if the referrers are not known.
		referrers []string
	}{
		"policies, clusters and the namespace are enough": {of: func(*decision) {}},
		"counts, for a score that weighs them":            {of: func(d *decision) { d.placement.Spec.Spread = scoredBy(10) }, read: []string{"counts"}, counts: map[string]int{"eu": 3}},
		"no counts, for a score without a weight":         {of: func(d *decision) { d.placement.Spec.Spread = scoredBy(0) }},
		"counts of bindings that the user may not list": {
			of: func(d *decision) {
				d.placement.Spec.Spread = scoredBy(10)
				d.count = func() (map[string]int, error) {
					return map[string]int{"half": 1}, apierrors.NewForbidden(schema.GroupResource{}, "", nil)
				}
			},
			read: []string{"counts"}, notes: []string{"the objects of each cluster are not counted"},
		},
		"the definition, for the path of divided replicas": {of: divides, read: []string{definitions}, path: ".spec.size"},
		"no definition, for a placement that names the path": {of: func(d *decision) {
			divides(d)
			d.placement.Spec.Replicas.Path = "/spec/size"
		}},
		"a definition that the user may not read": {
			of: func(d *decision) {
				divides(d)
				d.forbidden = []string{definitions}
			},
			read: []string{definitions}, notes: []string{"the definition of the kind is not considered"},
		},
		"a kind of a bundle that the hub does not serve": {of: func(d *decision) {
			divides(d)
			bundled(d)
			d.object.SetGroupVersionKind(schema.GroupVersionKind{Group: "other.dev", Version: "v1", Kind: "Gadget"})
			d.binding.Spec.ObjectRef.APIVersion, d.binding.Spec.ObjectRef.Kind = "other.dev/v1", "Gadget"
		}},
		"the definition, for a cluster that serves another version": {of: func(d *decision) { serves(d, "v1") }, read: []string{definitions}, others: []string{"v1"}},
		"no definition, for a cluster that serves two versions":     {of: func(d *decision) { serves(d, "v1", "v2") }},
		"no definition, for a cluster without the kind":             {of: func(d *decision) { serves(d) }},
		"no definition, for the one version of an object of a bundle": {of: func(d *decision) {
			bundled(d)
			serves(d, "v1")
		}},
		"a built-in kind without a definition": {of: func(d *decision) {
			serves(d, "v1")
			d.others = d.others[1:]
		}, read: []string{definitions}},
		"other versions that the user may not read": {
			of: func(d *decision) {
				serves(d, "v1")
				d.forbidden = []string{definitions}
			},
			read: []string{definitions}, notes: []string{"other versions of the kind are not considered"},
		},
		"the objects that need it": {of: referenced, read: []string{"ResourceBinding"}, referrers: []string{"Widget.example.com shop/needs"}},
		"an object that none needs any more": {
			of: func(d *decision) { d.binding.Spec.Referenced = true }, read: []string{"ResourceBinding"}, referrers: []string{},
		},
		"objects that need it and that the user may not list": {
			of: func(d *decision) {
				referenced(d)
				d.forbidden = []string{"ResourceBinding"}
			},
			read: []string{"ResourceBinding"}, notes: []string{"the objects that need this object are not known"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDecision()
			tc.of(d)
			in, notes, read, err := d.inputs(t)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.read, read); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, notes); diff != "" {
				t.Errorf("the user is told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.counts, in.Objects); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if in.Object.ScalePath != tc.path {
				t.Errorf("the path of the replicas is %q, want %q", in.Object.ScalePath, tc.path)
			}
			if diff := cmp.Diff(tc.others, in.Object.OtherVersions); diff != "" {
				t.Errorf("other versions (-want +got):\n%s", diff)
			}
			var referrers []string
			if in.Referrers != nil {
				referrers = []string{}
			}
			for _, r := range in.Referrers {
				referrers = append(referrers, r.ID.String())
			}
			if diff := cmp.Diff(tc.referrers, referrers); diff != "" {
				t.Errorf("the objects that need it (-want +got):\n%s", diff)
			}
			if f := in.Facts; len(f.Clusters) != 1 || len(f.Placements) != 1 || f.NamespaceLabels["team"] != "web" {
				t.Errorf("the facts are %+v", f)
			}
		})
	}
}

func TestADecisionIsNotReplayedWithoutItsInputs(t *testing.T) {
	t.Parallel()
	broken := errors.New("the API server does not answer")
	for name, tc := range map[string]struct {
		of   func(*decision)
		says string
	}{
		"clusters that the user may not list":   {func(d *decision) { d.forbidden = []string{"MemberCluster"} }, "reading the policies and clusters: listing MemberClusters: "},
		"placements that the user may not list": {func(d *decision) { d.forbidden = []string{"ClusterPlacement"} }, "reading the policies and clusters: listing ClusterPlacements: "},
		"counts that fail": {func(d *decision) {
			d.placement.Spec.Spread = scoredBy(10)
			d.count = func() (map[string]int, error) { return nil, broken }
		}, broken.Error()},
		"a kind that the hub has lost": {func(d *decision) {
			d.cluster.Status.APIResources[0].Kind = "Gadget"
			d.object.SetGroupVersionKind(widget.GroupVersion().WithKind("Gadget"))
		}, "finding the kind Gadget.example.com: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDecision()
			d.cluster.Status.APIResources[0].Versions = []string{"v1"}
			tc.of(d)
			if _, _, _, err := d.inputs(t); err == nil || !strings.HasPrefix(err.Error(), tc.says) {
				t.Errorf("the error is %v, want %q", err, tc.says)
			}
		})
	}
}

func TestTheScalePathIsThatOfAServedVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		of   func(*apiextensionsv1.CustomResourceDefinition)
		want string
	}{
		"of the first served version": {func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Served = false
			d.Spec.Versions[0].Subresources.Scale.SpecReplicasPath = ".spec.old"
		}, ".spec.size"},
		"of the version that can be scaled": {func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Subresources = nil }, ".spec.size"},
		"of none, if none can be scaled": {func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Subresources, d.Spec.Versions[1].Subresources.Scale = nil, nil
		}, ""},
	} {
		d := definition()
		tc.of(d)
		if got := ScalePath(d); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if got := ScalePath(nil); got != "" {
		t.Errorf("without a definition: %q", got)
	}
}
