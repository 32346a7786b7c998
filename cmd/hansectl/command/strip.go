package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	// atOnce is the maximum number of patches that uninstall sends at the same time.
	atOnce = 8
	// passes is the maximum number of passes over the objects of a kind. One pass may not be enough, because an object may
	// change between list and patch.
	passes = 3
)

var errComesBack = errors.New("the finalizer comes back: a hub without leader election is still running: stop this hub, and run the command again")

// strip removes the hub's finalizer from all objects that have it. left says how many objects of each kind stay on the
// hub.
func (u *uninstall) strip(ctx context.Context, hub client.Client) (left string, err error) {
	var parts []string
	for _, kind := range []string{"MemberCluster", "ResourceBinding", "ClusterResourceBinding"} {
		n, err := u.stripKind(ctx, hub, kind)
		if err != nil {
			return "", fmt.Errorf("removing the finalizer %s from every %s: %w", hubv1.WithdrawFinalizer, kind, err)
		}
		parts = append(parts, counted(n, kind))
	}
	return strings.Join(parts, ", "), nil
}

// stripKind makes passes over the objects of a kind until no object has the finalizer. It returns the number of objects
// that stay on the hub.
func (u *uninstall) stripKind(ctx context.Context, hub client.Client, kind string) (left int, err error) {
	plural := strings.ToLower(kind) + "s"
	for range passes {
		found, left, err := u.pass(ctx, hub, kind)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			printLine(u.hub.streams.Out, plural, "the hub does not serve the kind any more")
			return 0, nil
		}
		if err != nil || found == 0 {
			return left, err
		}
		printLine(u.hub.streams.Out, plural, "finalizer removed from %d", found)
	}
	return 0, errComesBack
}

// pass removes the finalizer from all objects of a kind, page by page. found is the number of objects that had the
// finalizer. left is the number of objects that stay on the hub.
func (u *uninstall) pass(ctx context.Context, hub client.Client, kind string) (found, left int, err error) {
	next := ""
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(hubv1.GroupVersion.WithKind(kind + "List"))
		if err := hub.List(ctx, page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return found, left, fmt.Errorf("listing: %w", err)
		}
		n, gone, err := stripPage(ctx, hub, kind, page.Items)
		found, left = found+n, left+len(page.Items)-gone
		if err != nil {
			return found, left, err
		}
		if next = page.Continue; next == "" {
			return found, left, nil
		}
		printLine(u.hub.streams.Out, strings.ToLower(kind)+"s", "%d seen", left)
	}
}

func stripPage(ctx context.Context, hub client.Client, kind string, objects []metav1.PartialObjectMetadata) (found, gone int, err error) {
	var vanished atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range objects {
		o := &objects[i]
		at := slices.Index(o.Finalizers, hubv1.WithdrawFinalizer)
		if at < 0 {
			continue
		}
		found++
		if o.DeletionTimestamp != nil && len(o.Finalizers) == 1 {
			vanished.Add(1)
		}
		group.Go(func() error {
			o.SetGroupVersionKind(hubv1.GroupVersion.WithKind(kind))
			patch := fmt.Sprintf(`[{"op":"test","path":"/metadata/finalizers/%d","value":%q},{"op":"remove","path":"/metadata/finalizers/%d"}]`, at, hubv1.WithdrawFinalizer, at)
			err := hub.Patch(ctx, o, client.RawPatch(types.JSONPatchType, []byte(patch)))
			if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
				return nil // the object or its finalizers have changed: the next pass handles it
			}
			if err != nil {
				return fmt.Errorf("%s: %w", client.ObjectKeyFromObject(o), err)
			}
			return nil
		})
	}
	err = group.Wait()
	return found, int(vanished.Load()), err
}
