// Command bench measures Hanse beside a raw client loop that does the same writes straight to the members, in one run
// on the same control planes: a hub and bare members of the lab, made for the run and taken down after it.
//
// It decides nothing: a slow run is a figure, not a failure. It fails if a copy is missing or not what was written.
// docs/benchmarks.md says how to read the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/hanse-dev/hanse/test/fleet"
)

// warm is the number of objects that go before a measured phase.
const warm = 10

// profiles are the sizes that have names.
var profiles = map[string]struct{ objects, members int }{
	"small": {500, 3},
	"wide":  {150, 10},
}

type options struct {
	profile          string
	objects, members int
	out              string
	config           fleet.Config
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o, os.Stdout)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	o := options{}
	o.config, _ = fleet.FromEnvironment(".")
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.profile, "profile", "small", "Size of the run: small is 500 objects to 3 members, wide is 150 to 10.")
	flags.IntVar(&o.objects, "objects", 0, "Number of objects; 0 is what the profile says.")
	flags.IntVar(&o.members, "members", 0, "Number of members; 0 is what the profile says.")
	flags.StringVar(&o.out, "out", filepath.Join(".cache", "bench.json"), "File for the results as JSON.")
	flags.StringVar(&o.config.Lab, "lab", o.config.Lab, "The lab's binary. Default $HANSE_LAB.")
	flags.StringVar(&o.config.Bin, "bin", o.config.Bin, "Folder with hanse-hub. Default $HANSE_BIN.")
	flags.StringVar(&o.config.Helm, "helm", o.config.Helm, "The helm binary. Default $HANSE_HELM.")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	p, ok := profiles[o.profile]
	if !ok {
		return o, fmt.Errorf("-profile %q is none of %v", o.profile, slices.Sorted(maps.Keys(profiles)))
	}
	if o.objects == 0 {
		o.objects = p.objects
	}
	if o.members == 0 {
		o.members = p.members
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.objects < 1 || o.members < 1:
		return o, errors.New("-objects and -members must be at least 1")
	case o.config.Lab == "" || o.config.Bin == "" || o.config.Helm == "":
		return o, errors.New("set -lab, -bin and -helm, or run make bench, which does")
	}
	return o, nil
}

// bench is one run.
type bench struct {
	options
	result *Result
	meter  *meter
	say    func(format string, args ...any)

	fleet   *fleet.Fleet
	names   []string            // of the members
	clients []dynamic.Interface // of the members, in the order of names
	hub     dynamic.Interface
}

// userWorkers is how many writes the user has in flight to the hub: as many as the raw loop has to all members together.
func (b *bench) userWorkers() int { return perMember * b.members }

func (b *bench) add(p Phase) {
	b.result.Phases = append(b.result.Phases, p)
	b.say("%s, %s: %.0f per second", p.System, p.Name, p.Rate)
}

func run(ctx context.Context, o options, out io.Writer) error {
	begin := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(out, "[%5.1fs] %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	dir, err := os.MkdirTemp("", "hanse-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	o.config.Dir = filepath.Join(dir, "lab")
	if o.config.Topology, err = topology(dir, o.members); err != nil {
		return err
	}
	b := &bench{options: o, say: say, result: &Result{
		Date: begin.UTC().Format(time.RFC3339), Profile: o.profile, Objects: o.objects, Members: o.members, InFlight: perMember,
		Command: fmt.Sprintf("go run ./test/bench -profile %s -objects %d -members %d", o.profile, o.objects, o.members),
	}}
	if b.result.Machine, err = machine(); err != nil {
		return err
	}
	sample, err := widget("bench", 0, 1).MarshalJSON()
	if err != nil {
		return err
	}
	b.result.ObjectBytes = len(sample)
	err = b.onLab(ctx)
	if len(b.result.Phases) == 0 {
		return err
	}
	if err != nil {
		b.result.Error = err.Error()
	}
	b.result.derive()
	fmt.Fprint(out, "\n", b.result.markdown())
	return errors.Join(err, b.result.write(o.out))
}

// onLab brings up the lab, measures, and takes the lab down again, whatever happened.
func (b *bench) onLab(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b.say("starting a hub and %d bare members", b.members)
	f, err := fleet.Up(ctx, b.config)
	defer func() {
		b.say("taking the lab down")
		down := &fleet.Fleet{Config: b.config}
		err = errors.Join(err, down.Down(context.WithoutCancel(ctx)))
	}()
	if err != nil {
		return err
	}
	b.fleet, b.meter = f, &meter{Fleet: f}
	if err := b.install(ctx); err != nil {
		return err
	}
	return b.measure(ctx, cancel)
}

func (b *bench) measure(ctx context.Context, cancel context.CancelCauseFunc) error {
	w, err := watchMembers(ctx, b.clients, cancel)
	if err != nil {
		return err
	}
	if err := b.versions(ctx); err != nil {
		return err
	}
	b.say("raw: %d objects straight to each member, %d requests in flight to each", b.objects, perMember)
	if err := b.raw(ctx); err != nil {
		return err
	}
	b.say("hub alone: the user's writes, %d in flight, nobody watching", b.userWorkers())
	if err := b.hubAlone(ctx); err != nil {
		return err
	}
	b.say("starting the hub process")
	hub, err := b.startHub(ctx)
	if hub != nil {
		defer func() { _ = hub.Kill() }()
	}
	if err != nil {
		return err
	}
	b.meter.pid = hub.PID
	b.say("hanse: the same writes on the hub, placed on every member")
	if err := b.hanse(ctx, w); err != nil {
		return fmt.Errorf("%w\nend of the hub's log:\n%s", err, hub.LogTail())
	}
	return nil
}

// install makes clients, kind, charts and namespaces.
func (b *bench) install(ctx context.Context) error {
	f := b.fleet
	b.names = slices.Sorted(maps.Keys(f.Members))
	kinds := []fleet.Kind{{APIGroups: []string{widgets.Group}, Resources: []string{widgets.Resource}, Status: true}}
	b.say("installing the kind and the charts")
	if err := f.InstallHub(ctx, kinds); err != nil {
		return err
	}
	var err error
	if b.hub, err = prepare(ctx, f.Hub, "alone", "alone-warm", "bench", "bench-warm"); err != nil {
		return err
	}
	for _, name := range b.names {
		if err := f.InstallMember(ctx, f.Members[name], kinds); err != nil {
			return err
		}
		c, err := prepare(ctx, f.Members[name], "raw", "raw-warm", "bench", "bench-warm")
		if err != nil {
			return err
		}
		b.clients = append(b.clients, c)
	}
	return nil
}

// prepare makes widgets served and the namespaces on a cluster, and returns a client without a rate limit.
func prepare(ctx context.Context, c *fleet.Cluster, namespaces ...string) (dynamic.Interface, error) {
	if err := c.ApplyCRD(ctx, widgetCRD, fieldManager); err != nil {
		return nil, err
	}
	for _, name := range namespaces {
		if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return nil, fmt.Errorf("creating namespace %s on %s: %w", name, c.Name, err)
		}
	}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", c.Name, err)
	}
	return client, nil
}
