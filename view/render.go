package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/canonical"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/plan"
)

// Renderings contains the rendered manifests of one object, the output of the command render.
type Renderings struct {
	Object   Object           `json:"object"`
	Clusters []plan.Rendering `json:"clusters"`
}

// Render renders the manifests of one object.
func Render(in plan.RenderInput) Renderings {
	return Renderings{Object: objectOf(hubv1.IdentityOf(in.Object), in.Object), Clusters: plan.Render(in)}
}

// Digests returns, by cluster, the digest of the manifest that the hub would send now. It returns no digest for a
// Secret, because only the hub has the key for digests of Secrets. A digest may be wrong if the hub leaves out fields
// that the cluster does not serve, or labels and annotations that a flag denies.
func Digests(in plan.RenderInput, salt string, memberOwned []string) map[string]string {
	out := map[string]string{}
	if hubv1.IsSecret(in.Object.GroupVersionKind().GroupKind()) {
		return out
	}
	for _, c := range plan.Render(in) {
		if c.Manifest != nil {
			out[c.Cluster] = overrides.DigestLeaving(canonical.Key{}, &unstructured.Unstructured{Object: c.Manifest}, memberOwned, salt)
		}
	}
	return out
}

// Failed returns the clusters for which the object cannot be rendered.
func (r Renderings) Failed() []plan.Rendering {
	return slices.DeleteFunc(slices.Clone(r.Clusters), func(c plan.Rendering) bool { return c.Error == "" })
}

// Write writes the manifests as YAML documents, each after a comment with its sources. For an excluded cluster, it
// writes only the comment. For a cluster with an error, it writes nothing.
func (r Renderings) Write(w io.Writer, _ time.Time) {
	for _, c := range r.Clusters {
		switch {
		case c.Excluded != "":
			fmt.Fprintf(w, "# %s\n", printable(c.Cluster+": excluded by "+c.Excluded))
		case c.Error == "":
			text, err := yaml.Marshal(c.Manifest)
			if err != nil { // a manifest contains only JSON values
				text = []byte("# " + printable(err.Error()) + "\n")
			}
			fmt.Fprintf(w, "---\n# %s\n%s", printable(c.Cluster+": "+made(c)), text)
		}
	}
}

// made returns the sources of a manifest's fields as text. The sources are the division of replicas and the rules of
// override policies. An example:
//
//	5 at /spec/replicas by the division; OverridePolicy shop/a, rule "r"; skipped OverridePolicy shop/b, rule "s": /spec/paused ...
func made(c plan.Rendering) string {
	var parts []string
	for _, d := range c.Divided {
		parts = append(parts, fmt.Sprintf("%d at %s by the division", d.Number, d.Path))
	}
	for _, a := range c.Applied {
		parts = append(parts, a.String())
	}
	for _, s := range c.Skipped {
		parts = append(parts, fmt.Sprintf("skipped %s: %s %s", s, s.Path, s.Reason))
	}
	if len(parts) == 0 {
		return "as on the hub"
	}
	return strings.Join(parts, "; ")
}
