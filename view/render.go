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
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/view/preview"
)

// Renderings contains the rendered manifests of one object, the output of the command render.
type Renderings struct {
	Object   Object              `json:"object"`
	Clusters []preview.Rendering `json:"clusters"`
}

// Render renders the manifests of one object.
func Render(in preview.RenderInput) Renderings {
	return Renderings{Object: objectOf(hubv1.IdentityOf(in.Object), in.Object), Clusters: preview.Render(in)}
}

// Check replaces each manifest that does not fit the definition of its kind by an error, which names the sources of the
// manifest. fits returns why an object does not fit.
func (r Renderings) Check(fits func(*unstructured.Unstructured) error) {
	for i := range r.Clusters {
		c := &r.Clusters[i]
		if c.Manifest == nil {
			continue
		}
		if err := fits(&unstructured.Unstructured{Object: c.Manifest}); err != nil {
			c.Error, c.Manifest = fmt.Sprintf("%s: the manifest does not fit the definition of its kind: %s", made(*c), err), nil
		}
	}
}

// Digests returns, by cluster, the digest of the manifest that the hub would send now. A copy that has this content
// from an earlier version of the hub, which sent all fields, keeps the digest in its row. Digests returns no digest for
// a Secret, because only the hub has the key for digests of Secrets. A digest may be wrong if the hub leaves out fields
// that the cluster does not serve, or labels and annotations that a flag denies.
func Digests(in preview.RenderInput, rows *hubv1.BindingStatus, salt string, memberOwned []string) map[string]string {
	out := map[string]string{}
	if hubv1.IsSecret(in.Object.GroupVersionKind().GroupKind()) {
		return out
	}
	digest := func(manifest map[string]any) string {
		return overrides.DigestLeaving(canonical.Key{}, &unstructured.Unstructured{Object: manifest}, memberOwned, salt)
	}
	for _, c := range preview.Render(in) {
		if c.Manifest == nil {
			continue
		}
		out[c.Cluster] = digest(c.Manifest)
		if row := rows.Row(c.Cluster); row != nil && c.Whole != nil && digest(c.Whole) == row.Digest {
			out[c.Cluster] = row.Digest
		}
	}
	return out
}

// Failed returns the clusters for which the object cannot be rendered.
func (r Renderings) Failed() []preview.Rendering {
	return slices.DeleteFunc(slices.Clone(r.Clusters), func(c preview.Rendering) bool { return c.Error == "" })
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
//	5 (/spec/replicas) by the division; OverridePolicy shop/a, rule "r"; skipped OverridePolicy shop/b, rule "s": /spec/paused ...
//
// The text ends with the labels and other metadata of the hub object that the hub never sends.
func made(c preview.Rendering) string {
	var parts []string
	for _, d := range c.Divided {
		parts = append(parts, fmt.Sprintf("%d (%s) by the division", d.Number, d.Path))
	}
	for _, a := range c.Applied {
		parts = append(parts, a.String())
	}
	for _, s := range c.Skipped {
		parts = append(parts, fmt.Sprintf("skipped %s: %s", s, strings.TrimSpace(s.Path+" "+s.Reason)))
	}
	if len(c.LeftOut) > 0 {
		parts = append(parts, "left to the cluster, because no field manager owns the field: "+strings.Join(c.LeftOut, ", "))
	}
	if len(parts) == 0 {
		parts = []string{"as on the hub"}
	}
	if len(c.Dropped) > 0 {
		parts = append(parts, "without "+strings.Join(c.Dropped, ", "))
	}
	return strings.Join(parts, "; ")
}
