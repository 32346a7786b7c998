package decide

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// maxReferences is the maximum number of objects that one hub object may need, such as ConfigMaps and Secrets.
const maxReferences = 64

// ReferencedKinds returns the kinds of the objects that the reference rules of a placement may find. It returns each
// kind once.
func ReferencedKinds(rules []hubv1.ReferenceRule) []schema.GroupKind {
	var out []schema.GroupKind
	add := func(kinds ...schema.GroupKind) {
		for _, k := range kinds {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	for _, r := range rules {
		if r.Kind == "" {
			add(schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "ServiceAccount"})
			continue
		}
		add(schema.GroupKind{Group: r.APIGroup, Kind: r.Kind})
	}
	return out
}

// References returns the objects that an object needs according to the reference rules of its placement, sorted by kind
// and name. A cluster-scoped object needs no other objects.
func References(template *unstructured.Unstructured, rules []hubv1.ReferenceRule) ([]hubv1.BindingReference, error) {
	if template.GetNamespace() == "" {
		return nil, nil
	}
	var out []hubv1.BindingReference
	for _, rule := range rules {
		values, err := at(template.Object, hubv1.PointerKeys(rule.Path))
		if err != nil {
			return nil, fmt.Errorf("references: path %s: %w", rule.Path, err)
		}
		for _, v := range values {
			found, err := referencesIn(v, rule)
			if err != nil {
				return nil, fmt.Errorf("references: path %s: %w", rule.Path, err)
			}
			for _, r := range found {
				if !slices.ContainsFunc(out, func(o hubv1.BindingReference) bool { return sameObject(o, r) }) {
					out = append(out, r)
				}
			}
		}
	}
	id := hubv1.IdentityOf(template)
	out = slices.DeleteFunc(out, func(r hubv1.BindingReference) bool { return r.In(id.Namespace) == id })
	if len(out) > maxReferences {
		return nil, fmt.Errorf("references: the object refers to %d objects, and at most %d are allowed: drop entries from spec.references of the placement", len(out), maxReferences)
	}
	slices.SortFunc(out, byObject)
	return out, nil
}

func sameObject(a, b hubv1.BindingReference) bool {
	return a.APIGroup == b.APIGroup && a.Kind == b.Kind && a.Name == b.Name
}

func byObject(a, b hubv1.BindingReference) int {
	return cmp.Or(cmp.Compare(a.APIGroup, b.APIGroup), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

var (
	errNotAnObject = errors.New("it leads through a field that is not an object")
	errNotAList    = errors.New("it has * for a field that is not a list")
	errNotAName    = errors.New("the value must be a name: a string that is not empty and has no slash")
	// errGivesRights is for a placement that is older than the rule of its definition against such references.
	errGivesRights = errors.New("references: an object that gives rights, such as a Role, is sent only if resourceSelectors select it")
)

// at returns the values at a path of keys. The key "*" selects all items of a list. A missing field has no value.
func at(value any, keys []string) ([]any, error) {
	if value == nil {
		return nil, nil
	}
	if len(keys) == 0 {
		return []any{value}, nil
	}
	if keys[0] != "*" {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, errNotAnObject
		}
		return at(fields[keys[0]], keys[1:])
	}
	items, ok := value.([]any)
	if !ok {
		return nil, errNotAList
	}
	var out []any
	for _, item := range items {
		found, err := at(item, keys[1:])
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// referencesIn returns the objects that a value in a hub object names. The value is a name, or a pod template if the
// rule has no kind.
func referencesIn(value any, rule hubv1.ReferenceRule) ([]hubv1.BindingReference, error) {
	if rule.Kind == "" {
		return ofPodTemplate(value, rule.Path)
	}
	name, ok := value.(string)
	if !ok || name == "" || strings.Contains(name, "/") {
		return nil, errNotAName
	}
	r := hubv1.BindingReference{APIGroup: rule.APIGroup, Kind: rule.Kind, Name: name, Path: rule.Path}
	if ofEveryNamespace(r) {
		return nil, nil
	}
	return []hubv1.BindingReference{r}, nil
}

// ofEveryNamespace reports whether Kubernetes itself creates an object of this name in each namespace, such as the
// ConfigMap kube-root-ca.crt.
func ofEveryNamespace(r hubv1.BindingReference) bool {
	return r.APIGroup == "" && (r.Kind == "ConfigMap" && r.Name == "kube-root-ca.crt" || r.Kind == "ServiceAccount" && r.Name == "default")
}

// ofPodTemplate returns the ConfigMaps, Secrets and the ServiceAccount that a pod template names.
func ofPodTemplate(value any, path string) ([]hubv1.BindingReference, error) {
	_, t, err := readPodTemplate(value)
	if err != nil {
		return nil, err
	}
	var out []hubv1.BindingReference
	add := func(kind, name string) {
		r := hubv1.BindingReference{Kind: kind, Name: name, Path: path}
		if name != "" && !ofEveryNamespace(r) {
			out = append(out, r)
		}
	}
	add("ServiceAccount", t.Spec.ServiceAccountName)
	for _, s := range t.Spec.ImagePullSecrets {
		add("Secret", s.Name)
	}
	readByPods(t, add)
	return out, nil
}

func readPodTemplate(value any) (fields map[string]any, t *corev1.PodTemplateSpec, err error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, nil, errors.New("the value must be a pod template")
	}
	t = &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, t); err != nil {
		return nil, nil, fmt.Errorf("reading the pod template: %w", err)
	}
	return fields, t, nil
}

// readByPods adds the ConfigMaps and Secrets of the volumes and containers of a pod template.
func readByPods(t *corev1.PodTemplateSpec, add func(kind, name string)) {
	for i := range t.Spec.Volumes {
		ofVolume(&t.Spec.Volumes[i], add)
	}
	for _, c := range slices.Concat(t.Spec.InitContainers, t.Spec.Containers) {
		ofContainer(&c, add)
	}
}

func ofContainer(c *corev1.Container, add func(kind, name string)) {
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			add("ConfigMap", from.ConfigMapRef.Name)
		}
		if from.SecretRef != nil {
			add("Secret", from.SecretRef.Name)
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		if e.ValueFrom.ConfigMapKeyRef != nil {
			add("ConfigMap", e.ValueFrom.ConfigMapKeyRef.Name)
		}
		if e.ValueFrom.SecretKeyRef != nil {
			add("Secret", e.ValueFrom.SecretKeyRef.Name)
		}
	}
}

func ofVolume(v *corev1.Volume, add func(kind, name string)) {
	if v.ConfigMap != nil {
		add("ConfigMap", v.ConfigMap.Name)
	}
	if v.Secret != nil {
		add("Secret", v.Secret.SecretName)
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				add("ConfigMap", s.ConfigMap.Name)
			}
			if s.Secret != nil {
				add("Secret", s.Secret.Name)
			}
		}
	}
	if v.CSI != nil && v.CSI.NodePublishSecretRef != nil {
		add("Secret", v.CSI.NodePublishSecretRef.Name)
	}
	if v.AzureFile != nil {
		add("Secret", v.AzureFile.SecretName)
	}
	if ref := secretOfVolume(v); ref != nil {
		add("Secret", ref.Name)
	}
}

// secretOfVolume returns the reference to the Secret that a volume needs to reach its storage, such as a CephFS or
// iSCSI volume. It is nil if the volume needs none.
func secretOfVolume(v *corev1.Volume) *corev1.LocalObjectReference {
	switch {
	case v.RBD != nil:
		return v.RBD.SecretRef
	case v.CephFS != nil:
		return v.CephFS.SecretRef
	case v.ISCSI != nil:
		return v.ISCSI.SecretRef
	case v.ScaleIO != nil:
		return v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		return v.StorageOS.SecretRef
	case v.FlexVolume != nil:
		return v.FlexVolume.SecretRef
	case v.Cinder != nil:
		return v.Cinder.SecretRef
	}
	return nil
}

// references returns the references for the binding. They name the objects that the newest state of the hub object
// needs, and former references, which name objects that an older copy may still need.
//
// A former reference is kept until the hub object no longer names the referenced object and every copy has been updated
// to this state. If only the placement's rules are edited, all references stay, because an edit of a placement must not
// withdraw a needed object.
func (in input) references(p *Plan, winner hubv1.PlacementObject) ([]hubv1.BindingReference, error) {
	rules := winner.PlacementSpec().References
	if slices.ContainsFunc(rules, func(r hubv1.ReferenceRule) bool { return r.APIGroup == rbacv1.GroupName }) {
		return nil, errGivesRights
	}
	now, err := References(in.Object.Template, rules)
	if err != nil {
		return nil, err
	}
	for _, before := range in.Spec().References {
		if slices.ContainsFunc(now, func(r hubv1.BindingReference) bool { return sameObject(r, before) }) {
			continue
		}
		before.Former = !stillNamed(in.Object.Template, before)
		if before.Former && in.isSettled(p) {
			continue
		}
		now = append(now, before)
	}
	if len(now) == 0 {
		return nil, nil
	}
	slices.SortFunc(now, func(a, b hubv1.BindingReference) int { return cmp.Or(presentFirst(a, b), byObject(a, b)) })
	now = now[:min(len(now), 2*maxReferences)]
	slices.SortFunc(now, byObject)
	return now, nil
}

// presentFirst sorts former references after the current ones. The API limits the number of references, and the last
// ones are cut off. If a current reference were cut off, the object that it names would be removed from its clusters.
func presentFirst(a, b hubv1.BindingReference) int {
	switch {
	case a.Former == b.Former:
		return 0
	case b.Former:
		return -1
	}
	return 1
}

// stillNamed reports whether the field at the path of the reference r still has the name of the referenced object.
func stillNamed(template *unstructured.Unstructured, r hubv1.BindingReference) bool {
	rule := hubv1.ReferenceRule{APIGroup: r.APIGroup, Kind: r.Kind, Path: r.Path}
	named := func(rule hubv1.ReferenceRule) bool {
		found, err := References(template, []hubv1.ReferenceRule{rule})
		return err == nil && slices.ContainsFunc(found, func(o hubv1.BindingReference) bool { return sameObject(o, r) })
	}
	return named(rule) || named(hubv1.ReferenceRule{Path: r.Path})
}

// isSettled reports whether every cluster of the plan has a copy of the newest state of the object.
func (in input) isSettled(p *Plan) bool {
	if in.Binding == nil {
		return true
	}
	hub, status := in.Object.hub(), in.Binding.BindingStatus()
	for _, e := range p.Spec.Clusters {
		row := status.Row(e.Name)
		switch {
		case e.State == hubv1.TargetAbsent, row == nil, row.Applied != metav1.ConditionTrue:
			return false
		case row.Reason == hubv1.ReasonIsTemplate:
		case !hubv1.Wanted(hubv1.BindingTarget{Name: e.Name}, hub).IsHeld(row.Generation, 0):
			return false
		}
	}
	return true
}
