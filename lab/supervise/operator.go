package supervise

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanse-dev/hanse/lab/kube"
	"github.com/hanse-dev/hanse/lab/process"
)

// prometheus-operator checks only at its start which of its kinds are served, and runs a controller for each of them.
// Its controller of Prometheus waits for the caches of the kinds below, even if they are not served. Therefore the lab
// starts the operator only when all these kinds are served, and restarts it when a further kind appears.
var operatorKinds = []string{"prometheuses", "servicemonitors", "podmonitors", "probes", "prometheusrules"}

const (
	operatorGroup     = "monitoring.coreos.com"
	operatorPollEvery = time.Second
)

// demand decides whether and with which command an operator runs in a cluster.
type demand interface {
	// command returns the command that must run. If no command must run, spec is nil, and waits says what the operator
	// waits for.
	command(context.Context) (spec *process.Spec, waits string, err error)
	// report receives the process of the last command, or nil if the process has ended.
	report(context.Context, *process.Process)
}

// always is a demand that always returns the same command.
type always process.Spec

func (a always) command(context.Context) (*process.Spec, string, error) {
	spec := process.Spec(a)
	return &spec, "", nil
}

func (always) report(context.Context, *process.Process) {}

// operator runs prometheus-operator while its CRDs are installed and its demand returns a command.
type operator struct {
	demand  demand
	starter *process.Starter
	client  *kube.Client
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	process *process.Process
	waits   string // what the operator waits for; empty while its process runs
}

func superviseOperator(starter *process.Starter, client *kube.Client, demand demand) *operator {
	ctx, cancel := context.WithCancel(context.Background())
	o := &operator{demand: demand, starter: starter, client: client, cancel: cancel, done: make(chan struct{})}
	o.waits = "for its CRDs"
	go o.run(ctx)
	return o
}

func (o *operator) run(ctx context.Context) {
	defer close(o.done)
	tick := time.NewTicker(operatorPollEvery)
	defer tick.Stop()
	var last, known []string // kinds at the last check, and at the start of the operator
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := o.served(ctx)
		if err != nil {
			continue // the API server is unreachable, and the operator continues
		}
		spec, waits, err := o.demand.command(ctx)
		if err != nil {
			continue
		}
		settled := slices.Equal(now, last)
		last = now
		switch {
		case spec == nil:
			o.end(waits)
		case settled && (len(now) > len(known) || o.differs(*spec)) && o.begin(*spec, now):
			known = now
		}
		o.demand.report(ctx, o.running())
	}
}

// served returns the operator's kinds that the API server serves, sorted.
func (o *operator) served(ctx context.Context) ([]string, error) {
	var kinds []string
	for _, version := range []string{"v1", "v1alpha1"} {
		served, err := o.client.Served(ctx, operatorGroup, version)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, served...)
	}
	slices.Sort(kinds)
	return kinds, nil
}

// differs returns true if the operator has no process, or was started with another command.
func (o *operator) differs(spec process.Spec) bool {
	p := o.running()
	return p == nil || !reflect.DeepEqual(p.Spec, spec)
}

// begin starts or restarts the operator. It returns true if the operator runs afterwards.
func (o *operator) begin(spec process.Spec, kinds []string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	var missing []string
	for _, kind := range operatorKinds {
		if !slices.Contains(kinds, kind) {
			missing = append(missing, kind)
		}
	}
	if len(missing) > 0 {
		o.waits = "for the CRDs of " + strings.Join(missing, ", ")
		return false
	}
	if o.process != nil {
		o.process.Kill(syscall.SIGTERM)
		o.process = nil
	}
	p, err := o.starter.Start(spec)
	if err != nil {
		o.waits = fmt.Sprintf("because it cannot be started: %v", err)
		return false
	}
	o.process = p
	return true
}

// end ends the operator if it runs, and records what the operator waits for.
func (o *operator) end(waits string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = waits
	if o.process != nil {
		o.process.Kill(syscall.SIGTERM)
		o.process = nil
	}
}

func (o *operator) stop() {
	o.cancel()
	<-o.done
	if p := o.running(); p != nil {
		p.Kill(syscall.SIGKILL)
	}
}

// running returns the operator's process. It is nil before the start and after the end of the operator.
func (o *operator) running() *process.Process {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.process
}

func (o *operator) waiting() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.waits
}
