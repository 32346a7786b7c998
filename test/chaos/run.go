package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// Options are the settings of a run.
type Options struct {
	Seed     uint64        // of the first round; each further round has the next seed
	For      time.Duration // no round begins after this time
	Replicas int           // of the hub
	// Root is the folder of the repository.
	Root string
}

// Result has the figures of a run.
type Result struct {
	Rounds, Edits, Refused, Faults, Hands, Restores int
	Deletions, Samples, Restarts                    int
	Slowest                                         time.Duration // until a round had converged
	Before, After                                   usage
	// Next is the seed at which another run continues.
	Next uint64
}

func (r Result) String() string {
	return fmt.Sprintf("%d rounds: %d edits (%d refused), %d faults, %d interventions by hand, %d restores, %d restarts of the hub; "+
		"%d deletions on members, each with a cause; %d samples without a lie; a round converged within %s; %s before, %s after; continue with HANSE_CHAOS_SEED=%d",
		r.Rounds, r.Edits, r.Refused, r.Faults, r.Hands, r.Restores, r.Restarts, r.Deletions, r.Samples, r.Slowest.Round(time.Second), r.Before, r.After, r.Next)
}

// run is a fleet under chaos.
type run struct {
	fleet    *fleet.Fleet
	opts     Options
	users    users
	journal  journal
	result   Result
	site     site
	servers  servers
	audit    []*auditLog
	expected expected
	faults   faults
}

// site has what joins members and installs definitions.
type site struct {
	members     map[string]client.Client // as administrator, past the fault proxies
	kubeconfigs map[string][]byte
	widgetCRD   string // path
	gadgetCRD   []byte
}

// servers are the servers that this process runs beside the lab.
type servers struct {
	replicas *replicas
	liar     *liar
	mutator  mutator
}

// expected has the earlier steps on which the expected state of the fleet depends.
type expected struct {
	causes  Causes
	history History
	regions map[string]int64 // the values in the OverridePolicy

	forgot    bool   // revisions that wait for an approval may be lost
	restored  bool   // a restore waits for its acceptance
	unclaimed Copies // the copies that no object of the restored hub claims
}

// faults has the times of faults, which explain why a sample may differ from the expected state.
type faults struct {
	mu           sync.Mutex
	disturbances []disturbance
}

const (
	// pause is the time between two steps.
	pause = 150 * time.Millisecond
	// convergence is how long a round may take until all copies and rows are as expected. The longest back-off of the hub
	// is 60 s, and the Leases of killed processes expire before.
	convergence = 4 * time.Minute
)

// Run sets up a fleet in the folder of the config, and runs rounds until the time is over. The error of a round has the
// seed and the last steps. The caller ends the fleet, which is not nil after the lab has started.
func Run(ctx context.Context, config fleet.Config, o Options) (*fleet.Fleet, Result, error) {
	file, err := os.Create(filepath.Join(config.Dir, "chaos.log"))
	if err != nil {
		return nil, Result{}, err
	}
	defer func() { _ = file.Close() }()
	r := &run{
		opts: o, journal: journal{file: file}, site: site{kubeconfigs: map[string][]byte{}, members: map[string]client.Client{}},
		expected: expected{regions: map[string]int64{}},
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err = r.setUp(ctx, config)
	defer r.close()
	if err != nil {
		return r.fleet, r.result, fmt.Errorf("setting up the fleet: %w", err)
	}
	go r.servers.replicas.keep(ctx)
	err = r.rounds(ctx)
	var failure error
	r.result.Restarts, failure = r.servers.replicas.outcome()
	return r.fleet, r.result, errors.Join(err, failure)
}

// close ends what this process runs beside the lab.
func (r *run) close() {
	if r.servers.replicas != nil {
		_ = r.servers.replicas.stop()
	}
	if r.servers.liar != nil {
		r.servers.liar.CloseClientConnections()
		r.servers.liar.Close()
	}
	if r.servers.mutator.Server != nil {
		r.servers.mutator.Close()
	}
}

// setUp starts the lab and the replicas, joins the members, and creates users, placements and the first objects.
func (r *run) setUp(ctx context.Context, config fleet.Config) (err error) {
	if r.fleet, err = fleet.Up(ctx, config); err != nil {
		return err
	}
	r.site.widgetCRD = filepath.Join(r.opts.Root, "test", "chaos", "testdata", "widget.yaml")
	crd, err := os.ReadFile(r.site.widgetCRD)
	if err != nil {
		return err
	}
	if r.site.gadgetCRD, err = os.ReadFile(filepath.Join(filepath.Dir(r.site.widgetCRD), "gadget.yaml")); err != nil {
		return err
	}
	kinds := []fleet.Kind{
		{APIGroups: []string{WidgetKind.Group}, Resources: []string{"widgets"}, Status: true},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}},
	}
	if err := r.fleet.Hub.ApplyCRD(ctx, crd, "chaos"); err != nil {
		return err
	}
	if err := r.fleet.InstallHub(ctx, kinds); err != nil {
		return err
	}
	if r.servers.liar, err = newLiar(r.fleet.Members[liarMember]); err != nil {
		return err
	}
	r.servers.mutator = newMutator()
	for _, m := range Members {
		if err := r.join(ctx, m, crd, kinds); err != nil {
			return fmt.Errorf("joining %s: %w", m, err)
		}
	}
	if r.servers.replicas, err = startReplicas(ctx, r.fleet, r.opts.Replicas); err != nil {
		return err
	}
	for _, ns := range Namespaces {
		if err := r.fleet.Hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			return err
		}
	}
	if r.users, err = newUsers(ctx, r.fleet.Hub); err != nil {
		return err
	}
	return r.seed(ctx)
}

// join installs the chart on a member and joins it to the hub.
func (r *run) join(ctx context.Context, name string, crd []byte, kinds []fleet.Kind) error {
	c := r.fleet.Members[name]
	if err := c.ApplyCRD(ctx, crd, "chaos"); err != nil {
		return err
	}
	if err := r.fleet.InstallMember(ctx, c, kinds); err != nil {
		return err
	}
	token, err := c.Token(ctx, "hanse")
	if err != nil {
		return err
	}
	kubeconfig, err := c.KubeconfigFor(token, true)
	if err != nil {
		return err
	}
	if name == liarMember {
		if kubeconfig, err = r.servers.liar.kubeconfig(kubeconfig); err != nil {
			return err
		}
	}
	r.site.kubeconfigs[name] = kubeconfig
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	if err := r.fleet.Hub.Create(ctx, secret); err != nil {
		return err
	}
	if r.site.members[name], err = clientFor(c.Config); err != nil {
		return err
	}
	r.audit = append(r.audit, &auditLog{member: name, path: c.AuditLog, user: "system:serviceaccount:" + hubv1.SystemNamespace + ":hanse"})
	return r.fleet.Join(ctx, c, map[string]string{tierLabel: "prod", ringLabel: "a"}) // with the Secret above
}

// seed creates placements and objects.
func (r *run) seed(ctx context.Context) error {
	for _, p := range placements() {
		if err := r.fleet.Hub.Create(ctx, p); err != nil {
			return err
		}
	}
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: operated}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.FederatedOperatorKind, Name: operated}}
	p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	if err := r.fleet.Hub.Create(ctx, p); err != nil {
		return err
	}
	steps := []Step{{Action: Operate, Value: 1}}
	for i := range configs {
		steps = append(steps, Step{Action: Apply, Key: configKey(i), Value: 1})
	}
	for ns, n := range objectsIn {
		for i := range n {
			steps = append(steps, Step{Action: Apply, Key: objectKey(ns, i), Value: 1, Text: map[string]string{referring: configKey(i % configs).Name}[ns]})
		}
	}
	steps = append(steps, Step{Action: Bundle, Keys: []Key{bundleKey(0), bundleKey(1)}, Value: 1})
	for _, s := range steps {
		// RBAC of the users may not be in the caches of the API server yet.
		if err := until(ctx, 20*time.Second, func() error { return r.edit(ctx, s) }); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// rounds runs rounds until the time is over, and compares what the replicas use before and after them.
func (r *run) rounds(ctx context.Context) (err error) {
	if err := r.converge(ctx, true); err != nil {
		return fmt.Errorf("before the first round: %w", err)
	}
	if r.result.Before, err = r.measure(ctx); err != nil {
		return err
	}
	r.journal.log("before the first round: %s", r.result.Before)
	r.expected.causes.Clear()
	r.result.Next = r.opts.Seed
	for began := time.Now(); r.result.Rounds == 0 || time.Since(began) < r.opts.For; r.result.Next++ {
		r.journal.log("round with seed %d", r.result.Next)
		if err := r.round(ctx, r.result.Next); err != nil {
			return fmt.Errorf("the round with seed %d of a run that began with seed %d and %d replicas: %w\nlast steps:\n%s", r.result.Next, r.opts.Seed, r.opts.Replicas, err, r.journal.last(40))
		}
		r.result.Rounds++
	}
	if r.result.After, err = r.measure(ctx); err != nil {
		return err
	}
	r.journal.log("after the last round: %s", r.result.After)
	return Leaked(r.result.Before, r.result.After)
}

// round carries out a plan, and judges the result.
func (r *run) round(ctx context.Context, seed uint64) error {
	var samples sampler
	sampling, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { r.sample(sampling, &samples) })
	failed := r.carryOut(ctx, Plan(seed, r.opts.Replicas))
	if failed == nil {
		failed = r.healAll(ctx)
	}
	if failed == nil {
		failed = r.judge(ctx)
	}
	stop()
	done.Wait()
	r.result.Samples += samples.judged
	if len(samples.lies) > 0 {
		failed = errors.Join(failed, fmt.Errorf("%d lies:\n%s", len(samples.lies), strings.Join(samples.lies, "\n")))
	}
	return failed
}

// carryOut does the steps of a plan. A user's request may fail, and other steps may fail on a cluster with a fault. A
// restore must not fail.
func (r *run) carryOut(ctx context.Context, steps []Step) error {
	for _, s := range steps {
		var err error
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		switch s.Action {
		case Begin, End:
			if err = r.fault(limited, s); s.Action == Begin {
				r.result.Faults++
			}
		case BackUp:
			if err := r.backUp(ctx); err != nil {
				cancel()
				return fmt.Errorf("%s: %w", s, err)
			}
		case Restore:
			r.result.Restores++
			if err := r.restore(ctx); err != nil {
				cancel()
				return fmt.Errorf("%s: %w", s, err)
			}
		case Rest:
			sleep(ctx, time.Duration(s.Value)*time.Second)
		case Drift, Destroy, Unbind, Forget, Undefine:
			r.result.Hands++
			err = r.hand(limited, s)
		default:
			r.result.Edits++
			if err = r.edit(limited, s); err != nil {
				r.result.Refused++
			}
		}
		cancel()
		r.journal.log("%s%s", s, errorText(err))
		sleep(ctx, pause)
	}
	return ctx.Err()
}

// sleep waits for a time, or until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf(": %.300s", strings.ReplaceAll(err.Error(), "\n", " "))
}

// judge waits for convergence, first with the approvals of the plan and then with an approval of everything, and looks
// for deletions without a cause.
func (r *run) judge(ctx context.Context) error {
	began := time.Now()
	if r.expected.restored {
		if err := until(ctx, time.Minute, func() error { _, err := r.fleet.Hansectl(ctx, "accept-restore", "--yes"); return err }); err != nil {
			return err
		}
		r.journal.log("accepted the restore")
	}
	err := r.tooEarly(ctx)
	if err == nil && !r.expected.forgot {
		err = r.converge(ctx, false)
	}
	if err == nil {
		err = r.converge(ctx, true)
	}
	r.result.Slowest = max(r.result.Slowest, time.Since(began))
	r.expected.forgot, r.expected.restored, r.expected.unclaimed = false, false, nil
	deletions, failed := r.deletions()
	if failed != nil {
		return failed
	}
	r.result.Deletions += len(deletions)
	if without := r.expected.causes.Without(deletions); len(without) > 0 {
		err = errors.Join(err, fmt.Errorf("%d deletions without a cause: %v", len(without), first(without, 20)))
	}
	r.expected.causes.Clear()
	r.journal.log("judged in %s: %d deletions%s", time.Since(began).Round(time.Second), len(deletions), errorText(err))
	return err
}

func (r *run) deletions() ([]Deletion, error) {
	var out []Deletion
	for _, a := range r.audit {
		d, err := a.deletions()
		if err != nil {
			return nil, err
		}
		out = append(out, d...)
	}
	return out, nil
}

// converge waits until the copies and the bindings are as expected. If approved is true, it approves the manual wave
// until no rollout waits.
func (r *run) converge(ctx context.Context, approved bool) error {
	var last time.Time
	return until(ctx, convergence, func() error {
		if approved && time.Since(last) > 10*time.Second {
			if err := r.approve(ctx); err != nil {
				return err
			}
			last = time.Now()
		}
		differences, err := r.compare(ctx, approved)
		if err != nil {
			return err
		}
		bindings, err := r.bindings(ctx)
		if err != nil {
			return err
		}
		open := unsettled(bindings, approved)
		if len(differences)+len(open) > 0 {
			return fmt.Errorf("%d copies differ, %d rows are not settled: %v %v", len(differences), len(open), first(differences, 10), first(open, 10))
		}
		return nil
	})
}

func first[T any](of []T, n int) []T { return of[:min(n, len(of))] }

// tooEarly returns an error if a cluster behind the manual wave has a content without an approval. A cluster must never
// have one, also before a round has converged.
func (r *run) tooEarly(ctx context.Context) error {
	differences, err := r.compare(ctx, false)
	if err != nil {
		return err
	}
	differences = slices.DeleteFunc(differences, func(d Difference) bool { return d.Wrong != TooEarly })
	if len(differences) > 0 {
		return fmt.Errorf("%d copies: %v", len(differences), first(differences, 10))
	}
	return nil
}

// compare compares the hub with the members. After a restore, it removes unclaimed copies as an administrator of the
// members.
func (r *run) compare(ctx context.Context, approved bool) ([]Difference, error) {
	s, err := r.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	have := Copies{}
	for _, m := range Members {
		if have[m], err = r.copiesOn(ctx, m); err != nil {
			return nil, err
		}
	}
	differences := Compare(s, have, &r.expected.history, approved)
	for _, d := range differences {
		if c, ok := r.expected.unclaimed[d.Member][d.Key]; ok && d.Wrong == Extra && have[d.Member][d.Key].Owner == c.Owner {
			err := r.site.members[d.Member].Delete(ctx, object(d.Key, 0, ""))
			r.journal.log("pruned %s on %s%s", d.Key, d.Member, errorText(err))
		}
	}
	return differences, nil
}
