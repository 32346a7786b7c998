package bundles

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
	"github.com/hanse-dev/hanse/hub/pace"
)

// checkEvery is the minimum time between two checks of an operator. Up to a tenth of it is added at random, so that the
// checks of many operators spread out.
const checkEvery = time.Hour

// maxCheckError is the maximum length of status.newest.error.
const maxCheckError = 512

// newestVersions sets status.newest of FederatedOperators. It asks one repository after the other: a repository that
// does not answer delays the other checks by fetch.MaxTime, and only once an hour. It writes a status only if the
// version changed, or if checks began or ceased to fail. So it writes nothing in most hours.
type newestVersions struct {
	opts   Options
	checks map[string]versionCheck // last checks, by the operator's name; only the one worker uses them

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[string] // names of operators; nil while another replica leads
}

// versionCheck is the last check of a chart's versions.
type versionCheck struct {
	// repository that was asked, with the name of the chart: URL/NAME.
	repository string
	// at is the time of the check. It is zero if this process has not asked the repository.
	at      time.Time
	next    time.Time // earliest time of the next check
	version string
	err     error
}

// setupWithManager adds the controller to the manager. The controller runs only in the leading replica.
func (n *newestVersions) setupWithManager(mgr manager.Manager) error {
	control, err := controller.NewTyped("newest-charts", mgr, controller.TypedOptions[string]{
		Reconciler:              n,
		NeedLeaderElection:      ptr.To(true),
		RecoverPanic:            ptr.To(true),
		MaxConcurrentReconciles: 1,
		RateLimiter:             pace.Retries[string](),
	})
	if err != nil {
		return fmt.Errorf("making the controller of newest charts: %w", err)
	}
	if err := control.Watch(source.TypedFunc[string](n.start)); err != nil {
		return fmt.Errorf("starting the controller of newest charts: %w", err)
	}
	return nil
}

// start stores the queue, and queues all operators.
func (n *newestVersions) start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) error {
	n.mu.Lock()
	n.queue = queue
	n.mu.Unlock()
	var all hubv1.FederatedOperatorList
	if err := n.opts.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing FederatedOperators: %w", err)
	}
	for i := range all.Items {
		queue.Add(all.Items[i].Name)
	}
	return nil
}

// wake queues a bundle, if it is an operator.
func (n *newestVersions) wake(of hubv1.BundleReference) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.queue != nil && of.Kind == hubv1.FederatedOperatorKind {
		n.queue.Add(of.Name)
	}
}

// Reconcile asks the repository of one operator, if a check is due, and writes status.newest if it changed.
func (n *newestVersions) Reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	o := &hubv1.FederatedOperator{}
	if err := n.opts.Client.Get(ctx, types.NamespacedName{Name: name}, o); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading FederatedOperator %s: %w", name, err)
	}
	if o.UID == "" || o.DeletionTimestamp != nil { // the operator does not exist, or not for long
		delete(n.checks, name)
		return reconcile.Result{}, nil
	}
	before := o.DeepCopy()
	again, err := n.check(ctx, o)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("asking for the newest version of the chart of FederatedOperator %s: %w", name, err)
	}
	if equality.Semantic.DeepEqual(before.Status.Newest, o.Status.Newest) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	err = n.opts.Client.Status().Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case isOutdated(err):
		return reconcile.Result{RequeueAfter: pace.FirstRetry}, nil // the result of the check is in memory
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("writing the newest version into the status of FederatedOperator %s: %w", name, err)
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// check sets status.newest of the operator. It returns the time until the next check, or 0 if the operator is not
// checked.
func (n *newestVersions) check(ctx context.Context, o *hubv1.FederatedOperator) (again time.Duration, err error) {
	if !n.opts.CheckVersions || o.Spec.Chart == nil || o.Spec.Chart.Repository == nil {
		delete(n.checks, o.Name)
		o.Status.Newest = nil
		return 0, nil
	}
	r, now := o.Spec.Chart.Repository, n.opts.Clock.Now()
	place := r.URL + "/" + r.Name
	was := o.Status.Newest
	if was != nil && was.Repository != place {
		was = nil
	}
	last := n.checks[o.Name]
	if last.repository != place {
		last = versionCheck{repository: place, next: now}
		if was != nil { // the leader before may have asked just now
			last.next = now.Add(untilNextCheck())
		}
	}
	if !now.Before(last.next) {
		last.version, last.err = n.ask(ctx, r)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		last.at = n.opts.Clock.Now()
		last.next = last.at.Add(untilNextCheck())
	}
	n.checks[o.Name] = last
	o.Status.Newest = newestOf(was, last)
	return last.next.Sub(now), nil
}

func untilNextCheck() time.Duration { return checkEvery + rand.N(checkEvery/10) }

// ask returns the newest version of a chart in its repository.
func (n *newestVersions) ask(ctx context.Context, r *hubv1.ChartRepository) (newest string, err error) {
	ch, err := chartOf(r)
	if err != nil {
		return "", err
	}
	if ch.Credentials, err = n.opts.credentials(ctx, r.Secret); err != nil {
		return "", err
	}
	err = n.opts.Charts.Versions(ctx, ch, func(versions []string) {
		newest = operator.Newest(r.Version, append(slices.Clip(versions), newest))
	})
	return newest, err
}

// newestOf returns status.newest after a check. was is the status before, or nil if it is about another repository.
func newestOf(was *hubv1.NewestChart, c versionCheck) *hubv1.NewestChart {
	if c.at.IsZero() {
		return was
	}
	is := &hubv1.NewestChart{Repository: c.repository, Version: c.version, Since: metav1.NewTime(c.at.Truncate(time.Second))}
	if c.err != nil {
		is.Error = hubv1.CutMessage(c.err.Error(), maxCheckError)
		if is.Version = ""; was != nil {
			is.Version = was.Version
		}
	}
	if was != nil && was.Version == is.Version && (was.Error == "") == (is.Error == "") {
		is.Since = was.Since
	}
	return is
}
