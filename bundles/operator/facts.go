package operator

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Facts returns the version of an operator, and whether it is installed, for each cluster on which the operator is
// placed. The operator is installed when each of its objects for which Needs is true, such as its workloads, was
// applied on the cluster at least once. wasInstalled has the clusters on which the operator was installed before. The
// operator counts as installed there, even if a new object of the operator is not applied yet.
func Facts(name string, objects []Stored, wasInstalled map[string]bool) map[string]hubv1.OperatorFact {
	var needed []Stored
	applied := map[string]int{} // number of needed objects that were applied, by cluster
	out := map[string]hubv1.OperatorFact{}
	for _, o := range objects {
		if !Needs(o.ObjectIdentity) {
			continue
		}
		needed = append(needed, o)
		if o.Binding == nil {
			continue
		}
		rows := map[string]hubv1.ClusterRow{}
		for _, row := range o.Binding.BindingStatus().Clusters {
			rows[row.Name] = row
		}
		for _, t := range o.Binding.BindingSpec().Clusters {
			if t.State == hubv1.TargetAbsent {
				continue
			}
			row := rows[t.Name]
			if counts := o.NotOn == nil || !o.NotOn(t.Name); counts && (row.Applied == metav1.ConditionTrue || row.Digest != "") { // a row with a digest has been written before
				applied[t.Name]++
			}
			out[t.Name] = hubv1.OperatorFact{Name: name, Version: lowest(out[t.Name].Version, row.Version)}
		}
	}
	for cluster, f := range out {
		wants := 0 // number of needed objects that the cluster shall hold
		for _, o := range needed {
			if o.NotOn == nil || !o.NotOn(cluster) {
				wants++
			}
		}
		f.Installed = wasInstalled[cluster] || applied[cluster] == wants
		out[cluster] = f
	}
	return out
}

// lowest returns the lower of two versions. If one text is empty, lowest returns the other one. A text that is no
// version is lower than every version.
func lowest(a, b string) string {
	if a == "" || b == "" {
		return cmp.Or(a, b)
	}
	switch x, y := parsed(a), parsed(b); {
	case x == nil && y != nil, x != nil && y != nil && x.LessThan(y):
		return a
	case x != nil && y == nil, x != nil && y.LessThan(x):
		return b
	}
	return min(a, b)
}

// parsed returns the version in a text such as v1.2.3-rc.1 or 1.2. It returns nil if the text is no version.
func parsed(text string) *version.Version {
	if v, err := version.ParseSemantic(text); err == nil {
		return v
	}
	v, err := version.ParseGeneric(text)
	if err != nil {
		return nil
	}
	return v
}
