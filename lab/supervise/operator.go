package supervise

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hanse-dev/hanse/lab/kube"
	"github.com/hanse-dev/hanse/lab/process"
)

// prometheus-operator checks only at its start which of its kinds are served, and runs a controller for each. Its
// controller of Prometheus waits for ever for the caches of the kinds below, served or not. So it is started when they
// are served, and restarted when a further kind appears.
var operatorKinds = []string{"prometheuses", "servicemonitors", "podmonitors", "probes", "prometheusrules"}

const (
	operatorGroup     = "monitoring.coreos.com"
	operatorPollEvery = time.Second
)

// operator starts prometheus-operator when its CRDs are installed.
type operator struct {
	spec    process.Spec
	starter *process.Starter
	client  *kube.Client
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	process *process.Process
	waits   string // the missing kinds, while there is no process
}

func superviseOperator(starter *process.Starter, spec process.Spec, client *kube.Client) *operator {
	ctx, cancel := context.WithCancel(context.Background())
	o := &operator{spec: spec, starter: starter, client: client, cancel: cancel, done: make(chan struct{})}
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
			continue // the API server is unreachable; the operator continues
		}
		settled := slices.Equal(now, last)
		last = now
		if settled && len(now) > len(known) && o.begin(now) {
			known = now
		}
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

// begin starts or restarts the operator, and reports whether it runs.
func (o *operator) begin(kinds []string) bool {
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
		return o.process.Start() == nil
	}
	p, err := o.starter.Start(o.spec)
	if err != nil {
		o.waits = fmt.Sprintf("because it cannot be started: %v", err)
		return false
	}
	o.process = p
	return true
}

func (o *operator) stop() {
	o.cancel()
	<-o.done
	if p := o.running(); p != nil {
		p.Kill(syscall.SIGKILL)
	}
}

// running returns the operator's process, or nil if it was never started.
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
