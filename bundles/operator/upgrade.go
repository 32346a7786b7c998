package operator

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
	"github.com/hanse-dev/hanse/bundles/manifest"
)

// Upgrade has all inputs that determine whether an operator may get new versions of its CustomResourceDefinitions.
type Upgrade struct {
	Definitions []ChangedDefinition
	// Acknowledged are spec.acknowledge of the operator.
	Acknowledged []hubv1.AcknowledgedChange
	// Chart is the new chart, and Stored the one from which the stored objects were rendered. Both are nil for an operator
	// with manifests.
	Chart, Stored *hubv1.RenderedChart
}

// ChangedDefinition is a CustomResourceDefinition that an upgrade changes.
type ChangedDefinition struct {
	Before, After *unstructured.Unstructured
	// Held are other states of the definition that clusters hold, such as an earlier one while a rollout is in progress.
	Held []*unstructured.Unstructured
	// StoredVersions, Earlier and Objects are those of crd.Input.
	StoredVersions map[string][]string
	Earlier        []*apiextensionsv1.CustomResourceDefinition
	Objects        []crd.Object
}

// Others returns those of the states of the definition that differ from Before and After.
func (d ChangedDefinition) Others(states []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(states), func(u *unstructured.Unstructured) bool {
		return equality.Semantic.DeepEqual(u.Object["spec"], d.Before.Object["spec"]) || equality.Semantic.DeepEqual(u.Object["spec"], d.After.Object["spec"])
	})
}

// Verdict says whether an upgrade is stored.
type Verdict struct {
	// Reason is UpgradeBlocked, UndoBlocked or ManifestInvalid. It is empty if the upgrade is stored.
	Reason, Message string
	// Warning is about stored versions that no definition of the hub has had. It is empty if there are none.
	Warning string
}

// maxUndoLength is the maximum length, in characters, of the text that tells how to undo an upgrade. It leaves room for
// the name and the versions of the chart in the message of the condition Stored.
const maxUndoLength = 824

// Judge compares the definitions. It returns an error only if ctx ends, or if a definition before cannot be read.
func (u Upgrade) Judge(ctx context.Context) (Verdict, error) {
	var reports []crd.Report
	for _, d := range u.Definitions {
		after, err := crd.Definition(d.After)
		if err != nil {
			return Verdict{Reason: hubv1.ReasonManifestInvalid, Message: fmt.Sprintf("%v; the stored objects stay", err)}, nil
		}
		seen := len(reports)
		for _, state := range append([]*unstructured.Unstructured{d.Before}, d.Held...) {
			before, err := crd.Definition(state)
			if err != nil {
				return Verdict{}, err
			}
			report, err := crd.Check(ctx, crd.Input{
				Before: before, After: after, StoredVersions: d.StoredVersions, Earlier: d.Earlier, Objects: d.Objects, Acknowledged: u.Acknowledged,
			})
			kind, _, _ := manifest.DefinedKind(d.After)
			if ctx.Err() != nil {
				return Verdict{}, fmt.Errorf("comparing the definitions of %s: %w", kind, ctx.Err())
			}
			if err != nil {
				return Verdict{Reason: hubv1.ReasonManifestInvalid, Message: fmt.Sprintf("comparing the definitions of %s: %v; the stored objects stay", kind, err)}, nil
			}
			reports = append(reports, report.Without(reports[seen:]...))
		}
	}
	if isOlder(u.Chart, u.Stored) {
		if text := crd.UndoMessage(maxUndoLength, "accept a change by its crd, rule and path in spec.acknowledge", reports...); text != "" {
			return Verdict{Reason: hubv1.ReasonUndoBlocked, Message: fmt.Sprintf("chart %s %s is older than the stored %s: %s", u.Chart.Name, u.Chart.Version, u.Stored.Version, text)}, nil
		}
	} else if text := crd.Message(reports...); text != "" {
		return Verdict{Reason: hubv1.ReasonUpgradeBlocked, Message: text}, nil
	}
	return Verdict{Warning: crd.Warning(reports...)}, nil
}

// isOlder reports whether a chart is an earlier version of the stored chart.
func isOlder(chart, stored *hubv1.RenderedChart) bool {
	if chart == nil || stored == nil || chart.Name != stored.Name {
		return false
	}
	now, err := version.ParseSemantic(chart.Version)
	before, err2 := version.ParseSemantic(stored.Version)
	return err == nil && err2 == nil && now.LessThan(before)
}
