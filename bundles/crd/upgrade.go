package crd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// These are the rules of findings that do not compare schemas. A finding that compares two schemas has as its rule the
// name of a validation of crdify, a library that compares CRDs, such as "maxLength" or "required". If crdify has no
// validation for the difference, the rule is the name of the part of the schema, such as "format" or
// "x-kubernetes-list-type".
const (
	// RuleScope means that the scope of the kind changes from Namespaced to Cluster, or from Cluster to Namespaced.
	RuleScope = "scope"
	// RuleGroup, RuleKind and RulePlural mean that the API group, the kind or the plural name changes.
	RuleGroup  = "group"
	RuleKind   = "kind"
	RulePlural = "plural"
	// RuleConversion means that the strategy of the conversion between versions changes.
	RuleConversion = "conversion"
	// RuleServedVersion means that a version that was served is removed or no longer served.
	RuleServedVersion = "servedVersionRemoval"
	// RuleStoredVersion means that a version in which a cluster has stored objects is removed or no longer served. crdify
	// uses the same name.
	RuleStoredVersion = "storedVersionRemoval"
	// RuleUnknownVersion means that a cluster has a stored version that neither the new definition nor an earlier one of
	// the hub has. The API server of this cluster refuses the new definition.
	RuleUnknownVersion = "storedVersionUnknown"
	// RuleSubresource means that the subresource status or scale is removed.
	RuleSubresource = "subresource"
	// RuleFieldRemoved means that a field is no longer declared, so that API servers drop the field from objects. crdify
	// uses the same name.
	RuleFieldRemoved = "existingFieldRemoval"
	// RuleObject means that the new definition refuses an object that the old definition accepts.
	RuleObject = "objectInvalid"
	// RuleExpression means that a rule of x-kubernetes-validations in the new definition refuses an object that the old
	// definition accepts.
	RuleExpression = "objectViolatesRule"
)

// MaxFindings is the maximum number of findings in each list of a Report.
const MaxFindings = 50

// Input has all inputs that determine whether a definition may be replaced by a new one. Check does not change its
// Input.
type Input struct {
	// Before is the definition that is used now. If it is nil, Check only compares After with StoredVersions.
	Before *apiextensionsv1.CustomResourceDefinition
	// After is the new definition. It is required.
	After *apiextensionsv1.CustomResourceDefinition
	// StoredVersions has status.storedVersions of the definition for each cluster. A cluster without an entry is not
	// checked, because its versions are not known.
	StoredVersions map[string][]string
	// Earlier are definitions that clusters may have got before, such as the stored revisions. A stored version counts
	// only if Before or one of them has it. A member may report any other version, and this must not block the fleet.
	Earlier []*apiextensionsv1.CustomResourceDefinition
	// Objects are the live objects of the kind. Objects of other kinds are ignored.
	Objects []Object
	// Acknowledged are changes of the definition that a user permits. They do not block the new definition. Entries for
	// other definitions are ignored.
	Acknowledged []hubv1.AcknowledgedChange
}

// Object is a live object at the API version at which the hub sends it to clusters. If clusters get different versions
// or contents, Input.Objects has one Object for each of them.
type Object struct {
	// Content is the object as decoded from JSON. The apiVersion in Content is the version at which the hub sends the
	// object to the clusters.
	Content *unstructured.Unstructured
	// Clusters are the names of the clusters that hold the object. The list is empty for an object that only the hub
	// holds.
	Clusters []string
}

// Finding is a change of a definition that breaks, or may break, objects or clusters.
type Finding struct {
	// CRD is the name of the new definition, such as lamps.example.com.
	CRD string `json:"crd"`
	// Rule names what the finding is about: one of the constants Rule..., the name of a validation of crdify (a library
	// that compares CRDs), or the name of a part of the schema.
	Rule string `json:"rule"`
	// Path is the JSON pointer of the field in an object, with "*" for any index or key of a map, such as
	// /spec/hours/*/start. If the finding is about another part of the definition, Path is a JSON pointer into the
	// definition, such as /spec/scope. The name of a version replaces its index, such as /spec/versions/v1beta1.
	Path string `json:"path"`
	// Version is the API version that the finding is about. It is empty if the finding is about the whole definition.
	Version string `json:"version,omitempty"`
	// Object identifies the first object that the change concerns. It is nil if the change concerns no object.
	Object *hubv1.ObjectIdentity `json:"object,omitempty"`
	// Objects is the number of live objects that the change breaks or may break.
	Objects int `json:"objects,omitempty"`
	// Clusters are the sorted names of all clusters that hold an object that Objects counts. For RuleStoredVersion and
	// RuleUnknownVersion, Clusters are the clusters whose definition lists Version in status.storedVersions.
	Clusters []string `json:"clusters,omitempty"`
	// Acknowledged is true if a user has permitted the change. Without this, the finding would block the new definition.
	Acknowledged bool `json:"acknowledged,omitempty"`
	// Message describes the change, such as `maxLength changes from 63 to 10`. It contains no value of an object.
	Message string `json:"message"`
}

// Report is the result of Check. Each list is sorted by path, rule and version, and has the first MaxFindings
// findings.
type Report struct {
	Blocked  []Finding `json:"blocked,omitempty"`
	Warnings []Finding `json:"warnings,omitempty"`
	// BlockedTotal and WarningsTotal count all findings. Blocked and Warnings list only the first MaxFindings of them.
	BlockedTotal  int `json:"blockedTotal"`
	WarningsTotal int `json:"warningsTotal"`
}

// Definition converts an object into a CustomResourceDefinition.
func Definition(o *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
		return nil, fmt.Errorf("reading CustomResourceDefinition %s: %w", o.GetName(), err)
	}
	return d, nil
}

// Check compares the old and the new definition, and checks the live objects with both. It returns an error if the new
// definition cannot be read, or if the context ends before the CEL rules of all objects are evaluated.
func Check(ctx context.Context, in Input) (Report, error) {
	if in.After == nil {
		return Report{}, errors.New("there is no new definition to compare")
	}
	c := &checker{before: in.Before, after: in.After, all: in.Objects, findings: map[findingKey]*collected{}}
	c.storedVersions(in.StoredVersions, append([]*apiextensionsv1.CustomResourceDefinition{in.Before}, in.Earlier...))
	if in.Before != nil {
		c.sortObjects()
		c.identity()
		if err := c.versions(ctx); err != nil {
			return Report{}, fmt.Errorf("checking the new definition %s: %w", in.After.Name, err)
		}
	}
	return c.report(in.Acknowledged), nil
}

// checker collects the findings while Check compares an old and a new definition.
type checker struct {
	before, after *apiextensionsv1.CustomResourceDefinition
	all           []Object
	// sent has, for each API version, the objects that are sent at this version. An object is given by its index in the
	// field all. The objects are sorted by namespace and name, because the message of a finding names the first one.
	sent     map[string][]int
	findings map[findingKey]*collected
}

func (c *checker) sortObjects() {
	c.sent = map[string][]int{}
	for i, o := range c.all {
		if o.Content == nil {
			continue
		}
		gvk := o.Content.GroupVersionKind()
		if gvk.Group == c.before.Spec.Group && gvk.Kind == c.before.Spec.Names.Kind {
			c.sent[gvk.Version] = append(c.sent[gvk.Version], i)
		}
	}
	for _, objects := range c.sent {
		slices.SortStableFunc(objects, func(a, b int) int {
			return compareIdentities(hubv1.IdentityOf(c.all[a].Content), hubv1.IdentityOf(c.all[b].Content))
		})
	}
}

// storedVersions adds findings about versions in which clusters have stored objects and which the new definition lacks
// or no longer serves. If the old definition does not serve such a version either, it is enough that the new definition
// has it. A version that none of the earlier definitions has does not block.
func (c *checker) storedVersions(stored map[string][]string, earlier []*apiextensionsv1.CustomResourceDefinition) {
	for _, cluster := range slices.Sorted(maps.Keys(stored)) {
		for _, name := range stored[cluster] {
			now, was := versionOf(c.after, name), versionOf(c.before, name)
			if now != nil && (now.Served || was == nil || !was.Served) {
				continue
			}
			f := Finding{Rule: RuleStoredVersion, Path: versionPath(name), Version: name, Message: "the version is removed, but clusters store objects at this version"}
			known := slices.ContainsFunc(earlier, func(d *apiextensionsv1.CustomResourceDefinition) bool { return versionOf(d, name) != nil })
			switch {
			case now != nil:
				f.Message = "clusters still store objects at this version, which the new definition does not serve"
			case !known:
				f.Rule, f.Message = RuleUnknownVersion, "no stored revision of the definition has this version"
			}
			c.add(f, known, nil).clusters.Insert(cluster)
		}
	}
}

// identity compares what the two definitions say about all versions: scope, group, names and conversion.
func (c *checker) identity() {
	was, is := c.before.Spec, c.after.Spec
	for _, part := range []struct{ rule, path, was, is string }{
		{RuleScope, "/spec/scope", string(was.Scope), string(is.Scope)},
		{RuleGroup, "/spec/group", was.Group, is.Group},
		{RuleKind, "/spec/names/kind", was.Names.Kind, is.Names.Kind},
		{RulePlural, "/spec/names/plural", was.Names.Plural, is.Names.Plural},
		{RuleConversion, "/spec/conversion/strategy", strategyOf(c.before), strategyOf(c.after)},
	} {
		if part.was != part.is {
			objects := slices.Concat(slices.Collect(maps.Values(c.sent))...)
			c.add(Finding{Rule: part.rule, Path: part.path, Message: fmt.Sprintf("%s changes from %q to %q", part.rule, part.was, part.is)}, true, objects)
		}
	}
}

func (c *checker) versions(ctx context.Context) error {
	for i := range c.before.Spec.Versions {
		was := &c.before.Spec.Versions[i]
		is, sent := versionOf(c.after, was.Name), c.sent[was.Name]
		if !was.Served {
			continue
		}
		if is == nil || !is.Served {
			message := "the version is no longer served"
			if is == nil {
				message = "the version is removed"
			}
			c.add(Finding{Rule: RuleServedVersion, Path: versionPath(was.Name), Version: was.Name, Message: message}, len(sent) > 0, sent)
			continue
		}
		c.subresources(was, is)
		if !equality.Semantic.DeepEqual(was.Schema, is.Schema) {
			if err := c.schemas(was, is); err != nil {
				return err
			}
		}
		if err := c.objects(ctx, was, is); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) subresources(was, is *apiextensionsv1.CustomResourceDefinitionVersion) {
	had, has := was.Subresources, is.Subresources
	if had == nil {
		return
	}
	for name, removed := range map[string]bool{
		"status": had.Status != nil && (has == nil || has.Status == nil),
		"scale":  had.Scale != nil && (has == nil || has.Scale == nil),
	} {
		if removed {
			sent := c.sent[was.Name]
			c.add(Finding{
				Rule: RuleSubresource, Path: versionPath(was.Name) + "/subresources/" + name, Version: was.Name,
				Message: "the subresource " + name + " is removed",
			}, len(sent) > 0, sent)
		}
	}
}

// versionOf returns a version of a definition. It is nil if the definition does not have the version.
func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	if crd == nil {
		return nil
	}
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &crd.Spec.Versions[i]
}

// storageOf returns the storage version of a definition. It is nil if the definition has none.
func storageOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	if i < 0 {
		return nil
	}
	return &crd.Spec.Versions[i]
}

// strategyOf returns the definition's strategy for conversion between versions. It is None by default.
func strategyOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.Spec.Conversion == nil {
		return string(apiextensionsv1.NoneConverter)
	}
	return string(cmp.Or(crd.Spec.Conversion.Strategy, apiextensionsv1.NoneConverter))
}

func versionPath(name string) string { return "/spec/versions" + step(name) }

// RemovedVersion returns the acknowledgement that permits a new definition without this version, although clusters
// store objects at it.
func RemovedVersion(crd, version string) hubv1.AcknowledgedChange {
	return hubv1.AcknowledgedChange{CRD: crd, Rule: RuleStoredVersion, Path: versionPath(version)}
}
