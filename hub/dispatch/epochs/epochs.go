// Package epochs keeps the list of the hub's epochs. An epoch is a period of the hub's writes, with a sequence number
// and a random part. Each copy names the epoch in which it was written. If the hub is restored from an older backup,
// the list therefore shows which copies were written after the backup; see package epoch.
//
// The list of epochs is in one ConfigMap, which all replicas share and watch. An epoch is used only after it is in the
// ConfigMap. A process adds an epoch before its first write to a member, unless another replica has added one since the
// process started. A process also adds an epoch when the newest one is ten minutes old and the process has written to a
// member since. A restored hub therefore writes with a new epoch. The new epoch may have the sequence number of an
// epoch that the restore has lost, but its random part differs. The list causes at most six writes an hour, one write
// for each start, and no write while the hub writes to no member.
//
// If a user deletes the ConfigMap, or the list in it, a running process writes the list that it knows again. If no
// process knows a list, the leader begins a new one, and no earlier copy is treated as newer than the hub.
package epochs

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/member/epoch"
)

const (
	// lasts is the minimum duration of one epoch (a period in which the hub writes to members), unless a start of the hub
	// ends the epoch. All edits within an epoch look the same. If a backup is made in the middle of an epoch, later edits
	// in this epoch are not recognised as newer than the backup.
	lasts = 10 * time.Minute
	// kept is the number of epochs in the list. keptWhileHeld is the number while the hub leaves at least one copy
	// unchanged after a restore from a backup. The hub wrote such a copy after the backup was made. If the epochs around
	// the time of that write were dropped, the copy would count as old and be overwritten. A ConfigMap has room for about
	// 40,000 epochs.
	kept          = 1000
	keptWhileHeld = 20000
	// maxForeign is the maximum number of foreign epochs in memory: epochs in copies that the list of this hub lacks. The
	// number is limited, because a member may write any epoch into its copies. If an epoch is dropped from memory, the hub
	// reads the ConfigMap again when it meets the epoch again.
	maxForeign = 1000
)

// Options of a Keeper. All except Clock are required.
type Options struct {
	// Reader reads the ConfigMap uncached, Client writes it and lists bindings from the cache.
	Reader client.Reader
	Client client.Client
	// ConfigMap is the ConfigMap with the list of epochs. If it does not exist, the hub creates it by server-side apply,
	// because a role can restrict this to one name.
	ConfigMap types.NamespacedName
	Clock     clock.PassiveClock
}

// Keeper maintains the list of epochs in the ConfigMap. It runs in every replica.
type Keeper struct {
	options   Options
	restarted func()

	mu    sync.Mutex
	known epoch.Epochs
	// since is the time at which the process first saw the newest epoch. wrote is true if the process has written to a
	// member since then. inherited is true if the newest epoch was already in the list when this process first read the
	// list.
	since     time.Time
	wrote     bool
	inherited bool
	read      bool // whether the list of epochs has been read
	// lost is true if the ConfigMap has no list although the process knows one.
	lost   bool
	failed time.Time
	// beginning is locked while Use adds an epoch to the list, so that concurrent calls of Use add only one epoch.
	beginning sync.Mutex
	// foreign has the epochs that copies name, but that an uncached read of the list did not find. The map is cleared when
	// a new list begins, and when it has maxForeign entries.
	foreign map[epoch.Epoch]bool
}

// New returns a Keeper that has not read the list of epochs yet.
func New(o Options) *Keeper {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Keeper{options: o, restarted: func() {}, foreign: map[epoch.Epoch]bool{}}
}

// OnRestart registers a function that is called when a new list of epochs replaces the former list. The function lets
// the hub write copies that it left unchanged after a restore from a backup. The hub wrote these copies after the
// backup was made. Call OnRestart before Start. The function must not block.
func (k *Keeper) OnRestart(f func()) { k.restarted = f }

// Watch watches the ConfigMap with the list of epochs.
func (k *Keeper) Watch(ctx context.Context, informers cache.Informers) error {
	informer, err := informers.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching ConfigMap %s on the hub: %w", k.options.ConfigMap, err)
	}
	take := func(obj any) {
		if c, ok := obj.(*corev1.ConfigMap); ok && client.ObjectKeyFromObject(c) == k.options.ConfigMap {
			k.take(read(c))
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: take, UpdateFunc: func(_, after any) { take(after) }, DeleteFunc: func(any) { k.take(epoch.Epochs{}) },
	})
	if err != nil {
		return fmt.Errorf("watching ConfigMap %s on the hub: %w", k.options.ConfigMap, err)
	}
	return nil
}

// read returns the list of epochs in the ConfigMap. If there is no ConfigMap, or if the list cannot be parsed, read
// returns an empty list.
func read(c *corev1.ConfigMap) epoch.Epochs {
	if c == nil {
		return epoch.Epochs{}
	}
	l, _ := epoch.ParseEpochs(c.Data[hubv1.EpochsKey])
	return l
}

// Ready waits until the list of epochs has been read. The hub writes to no member before that.
func (k *Keeper) Ready(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := k.get(ctx)
		switch {
		case err == nil && c == nil:
			ctrl.LoggerFrom(ctx).Info("The ConfigMap with the hub's epochs is missing: unless another replica has the list, the leader begins a new one, "+
				"and no existing copy counts as newer than the hub", "configMap", k.options.ConfigMap)
			return
		case err == nil:
			k.take(read(c))
			return
		}
		pause(ctx, pace.RetryAfter)
	}
}

// get reads the ConfigMap with the list of epochs uncached. The result is nil if the ConfigMap does not exist.
func (k *Keeper) get(ctx context.Context) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{}
	err := k.options.Reader.Get(ctx, k.options.ConfigMap, c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s: %w", k.options.ConfigMap, err)
	}
	return c, nil
}

// take makes the given list of epochs the cached list. It keeps the cached list if the given one is empty, because a
// user has deleted it.
func (k *Keeper) take(l epoch.Epochs) {
	k.mu.Lock()
	before, knew := k.known.Last()
	if k.lost = knew && l.Len() == 0; k.lost {
		k.mu.Unlock()
		return
	}
	k.known = l
	last, _ := l.Last()
	if last != before {
		k.since, k.wrote, k.inherited = k.options.Clock.Now(), false, !k.read
	}
	first, some := l.First()
	// The former list is empty if the process has started while there was none.
	restarted := k.read && some && (!knew || first.Sequence > before.Sequence)
	k.read = true
	if restarted {
		clear(k.foreign)
	}
	k.mu.Unlock()
	if restarted {
		k.restarted()
	}
}

// Current returns the cached list of epochs. Unlike Use, Current adds no epoch to the list.
func (k *Keeper) Current() epoch.Epochs {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

// Use returns the list of epochs for a write to a member. The copy gets the newest epoch. If this epoch is from before
// the start of the process, Use first adds another epoch. If Use cannot add it, the write uses the earlier epoch, and
// Look tries again.
func (k *Keeper) Use(ctx context.Context) epoch.Epochs {
	if k.appends() {
		k.beginning.Lock()
		defer k.beginning.Unlock()
		if k.appends() {
			if err := k.Look(ctx); err != nil && !apierrors.IsConflict(err) {
				ctrl.LoggerFrom(ctx).Error(err, "Beginning a new epoch")
			}
		}
	}
	return k.Current()
}

// appends records that the process writes to a member now. It reports whether an epoch must be added to the list before
// the write.
func (k *Keeper) appends() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wrote = true
	return k.inherited && k.options.Clock.Since(k.failed) >= pace.LookEvery
}

// Confirm reads the list of epochs uncached, because the cache may lack an epoch that another replica has just added.
// If the list lacks the epoch e, Confirm remembers e in the field foreign, and later calls for e return the cached
// list.
func (k *Keeper) Confirm(ctx context.Context, e epoch.Epoch) (epoch.Epochs, error) {
	k.mu.Lock()
	known, before := k.known, k.foreign[e]
	k.mu.Unlock()
	if before {
		return known, nil
	}
	c, err := k.get(ctx)
	if err != nil {
		return epoch.Epochs{}, err
	}
	k.take(read(c))
	l := k.Current()
	if l.Foreign(e) {
		k.mu.Lock()
		if len(k.foreign) >= maxForeign {
			clear(k.foreign)
		}
		k.foreign[e] = true
		k.mu.Unlock()
	}
	return l, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	for pause(ctx, pace.LookEvery) {
		if err := k.Look(ctx); err != nil && !apierrors.IsConflict(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Beginning a new epoch")
		}
	}
	return nil
}

// Look adds an epoch to the list, if the process has written to a member in the newest epoch, and this epoch is ten
// minutes old or is from before the start of the process. If the list was lost, Look adds an epoch, too, and so writes
// the list again.
func (k *Keeper) Look(ctx context.Context) error {
	k.mu.Lock()
	last, _ := k.known.Last()
	over := k.lost || k.wrote && (k.inherited || k.options.Clock.Since(k.since) >= lasts)
	k.mu.Unlock()
	if !over {
		return nil
	}
	err := k.begin(ctx, &last)
	if err != nil {
		k.mu.Lock()
		k.failed = k.options.Clock.Now()
		k.mu.Unlock()
	}
	return err
}

// Lead is called by each new leader. If the list of epochs is empty, Lead adds the first epoch.
func (k *Keeper) Lead(ctx context.Context) error {
	for ctx.Err() == nil && k.Current().Len() == 0 {
		err := k.begin(ctx, nil)
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Beginning a new epoch")
		}
		pause(ctx, pace.RetryAfter)
	}
	return nil
}

// begin adds an epoch to the list. If the argument after is set and is no longer the newest epoch, another replica has
// added an epoch, and begin adds none. If the list was lost, begin adds the epoch to the list that the process knows.
func (k *Keeper) begin(ctx context.Context, after *epoch.Epoch) error {
	c, err := k.get(ctx)
	if err != nil {
		return err
	}
	k.take(read(c))
	l := k.Current()
	if last, _ := l.Last(); after != nil && last != *after {
		return nil
	}
	most := kept
	if l.Len() >= kept {
		held, err := k.held(ctx)
		if err != nil {
			return err
		}
		if held {
			most = keptWhileHeld
		}
	}
	l = l.Append(epoch.NewRandom(), k.options.Clock.Now().Unix(), most)
	if err := k.write(ctx, c, l); err != nil {
		return fmt.Errorf("writing ConfigMap %s: %w", k.options.ConfigMap, err)
	}
	k.take(l)
	return nil
}

// write writes the list into the ConfigMap c, or into a new one if c is nil. If another replica has created the
// ConfigMap meanwhile, the error is a conflict, because the replicas have different field managers.
func (k *Keeper) write(ctx context.Context, c *corev1.ConfigMap, l epoch.Epochs) error {
	if c == nil {
		ctrl.LoggerFrom(ctx).Info("Creating the missing ConfigMap with the hub's epochs", "configMap", k.options.ConfigMap, "epochs", l.Len())
		made := applycorev1.ConfigMap(k.options.ConfigMap.Name, k.options.ConfigMap.Namespace).WithData(map[string]string{hubv1.EpochsKey: l.String()})
		return k.options.Client.Apply(ctx, made, client.FieldOwner("hanse-hub-"+rand.Text()))
	}
	if c.Data == nil {
		c.Data = map[string]string{}
	}
	c.Data[hubv1.EpochsKey] = l.String()
	return k.options.Client.Update(ctx, c)
}

// held reports whether the hub leaves at least one copy unchanged after a restore from a backup. The hub wrote such a
// copy after the backup was made.
func (k *Keeper) held(ctx context.Context) (bool, error) {
	bindings, err := scopes.Bindings(ctx, k.options.Client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("looking for copies that are newer than the hub: %w", err)
	}
	return slices.ContainsFunc(bindings, func(b hubv1.BindingObject) bool {
		return slices.ContainsFunc(b.BindingStatus().Clusters, func(row hubv1.ClusterRow) bool { return row.Reason == hubv1.ReasonHubIsOlder })
	}), nil
}

// pause waits for the duration d. It returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
