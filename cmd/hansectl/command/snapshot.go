package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"

	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/view/preview"
)

// snapshot is the input of package preview: all objects, policies and clusters, before and after the changes that plan
// examines.
type snapshot struct {
	before, after decide.Fleet
	// changes describes the changes that the user requests by flags.
	changes     []string
	definitions map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	namespace   string
	notes       []string
	rights      preview.Rights
	// bundles are the states of the hub's bundles. A stored plan compares them to find out whether a bundle has changed
	// since.
	bundles []preview.Version
}

// snapshotInput says what a snapshot shall contain: the state of a hub, and the same state with changes.
type snapshotInput struct {
	// from has the files that replace the hub. It is nil if the command reads the hub.
	from *fleetFiles
	// files are the changed objects. hansectl applies them to a copy of the hub's state, and then makes the changes that
	// flags request.
	files   *fleetFiles
	changes fleetChanges
}

// snapshot reads the fleet from the hub, or from the files that replace the hub. It makes the changes in a copy of the
// fleet.
func (h *hub) snapshot(ctx context.Context, w *window, in snapshotInput, progress *progressPrinter) (*snapshot, error) {
	if in.from == nil {
		c, err := h.reader(w)
		if err != nil {
			return nil, err
		}
		if err := h.narrow(ctx, c); err != nil {
			return nil, err
		}
	}
	s := &snapshot{namespace: *h.flags.Namespace}
	note, err := in.files.inNamespace(s.namespace)
	if err != nil {
		return nil, err
	}
	if note != "" {
		s.notes = append(s.notes, note)
	}
	narrowed := false
	if in.from != nil {
		err = s.fromFiles(ctx, in)
	} else {
		narrowed, err = s.fromHub(ctx, h, w, in, progress)
	}
	if err != nil {
		return nil, err
	}
	if s.changes, err = in.changes.applyTo(ctx, &s.after); err != nil {
		return nil, err
	}
	for _, b := range in.files.bundles {
		s.notes = append(s.notes, fmt.Sprintf("hansectl does not check whether ServiceAccount %s/%s may write the objects of %s",
			inputs.BundleHome(b), cmp.Or(b.BundleSpec().ServiceAccountName, "default"), hubv1.OfBundle(b).String()))
	}
	s.notes = append(s.notes, unmatched(in.files, s.after.Clusters, narrowed)...)
	return s, nil
}

// fromHub reads the objects, policies and clusters from the hub, and applies the files to a copy of them. narrowed is
// true if the user sees only a part of the clusters.
func (s *snapshot) fromHub(ctx context.Context, h *hub, w *window, in snapshotInput, progress *progressPrinter) (narrowed bool, err error) {
	r, err := newFleetReader(ctx, h, w, progress)
	if err != nil {
		return false, err
	}
	if s.before, err = r.read(in.files, time.Now()); err != nil {
		return false, in.files.hintNamespace(err, r.Namespace, r.home)
	}
	if err := r.known(in.files); err != nil {
		return false, err
	}
	in.files.objects = slices.DeleteFunc(in.files.objects, func(u *unstructured.Unstructured) bool { return r.unread[u.GroupVersionKind().GroupKind()] })
	s.after = s.before
	if err := in.files.applyTo(ctx, &s.after, r); err != nil {
		return false, err
	}
	if s.definitions, err = r.definitionsFor(in.files); err != nil {
		return false, err
	}
	if s.bundles, err = versionsOfBundles(r.bundles); err != nil {
		return false, err
	}
	if !in.changes.any() {
		if s.rights, err = r.rights(s.before.Placements, in.files.definitions()); err != nil {
			return false, err
		}
	}
	s.notes = append(s.notes, r.notes...)
	return r.narrowed(), nil
}

// fromFiles reads the objects, policies and clusters from the files that replace the hub, and applies the changed files
// to a copy of them.
func (s *snapshot) fromFiles(ctx context.Context, in snapshotInput) error {
	var notes []string
	s.before, notes = in.from.fleet(time.Now(), s.namespace)
	s.notes = append(s.notes, notes...)
	in.files.defaultNamespaces(s.namespace)
	kinds := kindsOfFiles(in.from, s.namespace)
	s.after = s.before
	if err := in.files.applyTo(ctx, &s.after, kinds); err != nil {
		return err
	}
	roles, err := federatedInFiles(in.from)
	if err != nil {
		return err
	}
	if roles != nil && !in.changes.any() {
		roles.resource = resourceIn(in.from.definitions(), in.files.definitions())
		s.rights = roles.known(s.before.Placements)
	}
	s.definitions = kinds.definitions
	maps.Copy(s.definitions, in.files.definitions())
	return nil
}
