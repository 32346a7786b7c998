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
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/plan"
)

// Renderings are the manifests of one object, as `render` shows them.
type Renderings struct {
	Object   Object           `json:"object"`
	Clusters []plan.Rendering `json:"clusters"`
}

// Render makes the manifests of one object.
func Render(in plan.RenderInput) Renderings {
	return Renderings{Object: objectOf(decide.IdentityOf(in.Object), in.Object), Clusters: plan.Render(in)}
}

// Digests by cluster are those of what the hub would send now, as far as that can be known outside of the hub: those of
// Secrets are keyed. What a cluster has no fields for, and prefixes of metadata that the hub leaves out by a flag, are
// taken for sent.
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

// Failed are the clusters for which the object cannot be rendered.
func (r Renderings) Failed() []plan.Rendering {
	return slices.DeleteFunc(slices.Clone(r.Clusters), func(c plan.Rendering) bool { return c.Error == "" })
}

// Write writes the manifests as documents of YAML, each after a comment that says what made it. An excluded cluster
// has the comment alone. A cluster that failed has nothing.
func (r Renderings) Write(w io.Writer, _ time.Time) {
	for _, c := range r.Clusters {
		switch {
		case c.Excluded != "":
			fmt.Fprintf(w, "# %s\n", printable(c.Cluster+": excluded by "+c.Excluded))
		case c.Error == "":
			text, err := yaml.Marshal(c.Manifest)
			if err != nil { // a manifest is made of what JSON has
				text = []byte("# " + printable(err.Error()) + "\n")
			}
			fmt.Fprintf(w, "---\n# %s\n%s", printable(c.Cluster+": "+made(c)), text)
		}
	}
}

// made reads such as
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
