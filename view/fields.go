package view

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view/preview"
)

// Fields shows which policy or manager set each field of an object on one cluster. It is the output of `explain
// --fields`.
type Fields struct {
	Fields []FieldRow `json:"fields"`
	// Changed are the fields of the copy that the cluster has stored with other values than the hub sent, such as
	// `.spec.replicas 2 instead of 4`. Of a Secret, there are only the paths.
	Changed []string `json:"changed,omitempty"`
	// Skipped are the rules that were skipped because one of their test operations failed.
	Skipped []string `json:"skipped,omitempty"`
	// Digest compares two digests of the manifest: the one in the annotation of the copy, and the one that the hub last
	// confirmed.
	Digest string `json:"digest,omitempty"`
	// Note is the reason why the copy on the cluster could not be read. It is empty if the copy was read.
	Note string `json:"note,omitempty"`
	// Error is the reason why the hub cannot render the object. It is empty if the object was rendered.
	Error string `json:"error,omitempty"`
	// Manifest is the object as the hub renders it for the cluster. It is nil for a Secret.
	Manifest *unstructured.Unstructured `json:"-"`
}

// FieldRow is one field of a copy: a field whose value differs from the hub object, or that members own.
type FieldRow struct {
	// Field is the JSON pointer of the field in the copy.
	Field string `json:"field"`
	// Value is the value as JSON, "(removed)", or "***" for a value of a Secret.
	Value string `json:"value"`
	SetBy string `json:"setBy"`
	Rank  string `json:"rank,omitempty"`
	// Shadowed are the overwritten values of the field. The value that was overwritten last is the first.
	Shadowed []string `json:"shadowed,omitempty"`
	// Managers are the field managers of the field on the member.
	Managers []string `json:"managers,omitempty"`
}

// FieldsOf explains the fields of the object on a cluster. It uses the hub's data, the given policies, and the copy if
// the copy was read.
func FieldsOf(in decide.Input, policies []hubv1.OverridePolicyObject, cluster *hubv1.MemberCluster, onMember *unstructured.Unstructured) *Fields {
	out := &Fields{}
	result, err := preview.Explain(preview.RenderInput{
		Object: in.Object.Template, OtherVersions: in.Object.OtherVersions, Binding: in.Binding.BindingSpec(), Policies: policies,
		NamespaceLabels: in.Facts.NamespaceLabels,
	}, cluster)
	if err != nil {
		out.Error = err.Error()
		return out
	}
	secret := hubv1.IsSecret(hubv1.ObjectOf(in.Binding).GroupKind())
	for _, f := range result.Fields {
		row := FieldRow{Field: f.Path, Value: valueOf(f.FieldValue, secret), SetBy: author(f.By), Rank: f.By.Rank}
		for _, s := range f.Shadowed {
			row.Shadowed = append(row.Shadowed, author(s.By)+": "+valueOf(s, secret))
		}
		out.Fields = append(out.Fields, row.managed(onMember, result.Manifest))
	}
	for _, pointer := range leftToMember(in) {
		row := FieldRow{Field: pointer, SetBy: "memberOwnedFields"}
		if onMember != nil {
			if v, there, err := unstructured.NestedFieldNoCopy(onMember.Object, hubv1.PointerKeys(pointer)...); there && err == nil {
				row.Value = valueOf(overrides.FieldValue{Value: v}, secret)
			}
		}
		out.Fields = append(out.Fields, row.managed(onMember, result.Manifest))
	}
	if !secret {
		out.Manifest = result.Manifest
	}
	out.Changed = changedOn(in, cluster.Name, onMember, result.Manifest, secret)
	for _, s := range result.Skipped {
		out.Skipped = append(out.Skipped, fmt.Sprintf("%s: %s", author(overrides.Author{Rule: s.Rule}), strings.TrimSpace(s.Path+" "+s.Reason)))
	}
	out.Digest = digestOf(in, cluster.Name, onMember)
	return out
}

// changedOn returns the fields that the cluster has changed, according to the row of the copy. The row names only the
// first ones. All of them are known if the copy was read, except for a Secret, whose values are not shown.
func changedOn(in decide.Input, cluster string, onMember, manifest *unstructured.Unstructured, secret bool) []string {
	switch row := in.Binding.BindingStatus().Row(cluster); {
	case row == nil || row.ChangedByCluster == "":
		return nil
	case onMember == nil || secret:
		return []string{row.ChangedByCluster}
	}
	manifest = manifest.DeepCopy()
	content.LeaveToMember(manifest, onMember, append(content.Autoscaled(onMember), leftToMember(in)...))
	var out []string
	for _, a := range content.Altered(onMember, manifest) {
		out = append(out, content.AlterationText([]content.Alteration{a}, false))
	}
	return out
}

func (f FieldRow) managed(onMember, manifest *unstructured.Unstructured) FieldRow {
	if onMember != nil {
		f.Managers = content.Managers(onMember, manifest, f.Field)
	}
	return f
}

// leftToMember returns the fields that members own, according to the object's placement. If the placement was deleted,
// it returns the fields that the binding has recorded from this placement.
func leftToMember(in decide.Input) []string {
	if ref := in.Binding.BindingSpec().PlacementRef; ref != nil {
		for _, p := range in.Facts.Placements {
			if p.GetUID() == ref.UID {
				return p.PlacementSpec().Apply.MemberOwnedFields
			}
		}
	}
	return hubv1.LastSettings(in.Binding).Apply.MemberOwnedFields
}

// author returns the policy and the rule as text, such as OverridePolicy/metrics-by-region (shanghai-is-busy).
func author(a overrides.Author) string {
	if a.Division || a.Rule == (overrides.RuleRef{}) {
		return a.String()
	}
	return fmt.Sprintf("%s/%s (%s)", a.Rule.Policy.Kind, a.Rule.Policy.Name, a.Rule.Rule)
}

func valueOf(v overrides.FieldValue, secret bool) string {
	if v.Removed {
		return "(removed)"
	}
	if secret {
		return "***"
	}
	text, err := json.Marshal(v.Value)
	if err != nil {
		return "?"
	}
	return string(text)
}

func digestOf(in decide.Input, cluster string, onMember *unstructured.Unstructured) string {
	row := in.Binding.BindingStatus().Row(cluster)
	if row == nil || row.Digest == "" {
		return ""
	}
	text := fmt.Sprintf("confirmed %s at hub generation %d", row.Digest, row.Generation)
	if now := in.Object.Template.GetGeneration(); now != 0 {
		text += fmt.Sprintf(" of %d", now)
	}
	if onMember == nil {
		return text
	}
	if there := onMember.GetAnnotations()[hubv1.DigestAnnotation]; there != row.Digest {
		return fmt.Sprintf("member %s, %s", printable(there), text)
	}
	return "member = " + text
}

const maxCellLength = 100

func (f *Fields) write(w io.Writer) {
	line(w, "Fields", f.Error)
	var rows [][]string
	for _, r := range f.Fields {
		managers := strings.Join(r.Managers, ", ")
		if managers == "" && f.Note == "" {
			managers = "none"
		}
		rows = append(rows, []string{r.Field, cut(r.Value), r.SetBy, r.Rank, cut(strings.Join(r.Shadowed, "; ")), managers})
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
		table(w, []string{"FIELD", "VALUE", "SET BY", "RANK", "SHADOWED", "MEMBER MANAGER"}, rows)
	} else if f.Error == "" && len(f.Changed) == 0 {
		line(w, "Fields", "all are as in the template")
	}
	for _, c := range f.Changed {
		line(w, "Changed", "the copy has "+c)
	}
	for _, s := range f.Skipped {
		line(w, "Skipped", s)
	}
	line(w, "Digest", f.Digest)
	line(w, "Note", f.Note)
}

func cut(s string) string { return hubv1.CutMessage(s, maxCellLength) }
