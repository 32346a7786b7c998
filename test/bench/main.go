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
	"strings"
	"syscall"
	"time"

	"github.com/hanse-dev/hanse/test/fleet"
)

// profile is a named set of settings for a run.
type profile struct {
	about            string
	objects, members int
	minMembers       int
	// rounds is how often a throughput profile measures Hanse. The number is higher if a phase takes only seconds, because
	// the rates then vary more.
	rounds  int
	measure func(*run, context.Context) error
}

func profiles() map[string]profile {
	return map[string]profile{
		"small":     {"500 objects to 3 members", 500, 3, 1, 3, (*run).throughput},
		"wide":      {"150 objects to 10", 150, 10, 1, 3, (*run).throughput},
		"wider":     {"50 objects to 30", 50, 30, 1, 1, (*run).throughput},
		"deep":      {"5000 objects to 3", 5000, 3, 1, 1, (*run).throughput},
		"memory":    {"the heap for 5000 objects of 1 and of 50 KiB on 3 members and on 1", 5000, 3, 2, 1, (*run).memory},
		"isolation": {"400 objects to 10 members, of which 3 are bad", 400, 10, bad + 1, 1, (*run).isolation},
		"lost":      {"the rows of 1000 objects of a lost member, one of 3", 1000, 3, 2, 1, (*run).lost},
		"pages":     {"500 open pages of the console, 1000 objects on 10 members", 1000, 10, 1, 1, (*run).pages},
		"tenants":   {"one tenant beside 10000 objects of a noisy one on 3 members", 10_000, 3, 1, 1, (*run).tenants},
	}
}

// compareCommand is the first argument that prints recorded runs side by side instead of measuring.
const compareCommand = "compare"

type options struct {
	profile          string
	objects, members int
	rounds           int
	out              string
	config           fleet.Config
	measure          func(*run, context.Context) error
}

func main() {
	args, do := os.Args[1:], bench
	if len(args) > 0 && args[0] == compareCommand {
		args, do = args[1:], compare
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := do(ctx, args, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	o := options{}
	o.config, _ = fleet.FromEnvironment(".")
	known := profiles()
	names := slices.Sorted(maps.Keys(known))
	about := make([]string, len(names))
	for i, name := range names {
		about[i] = name + ": " + known[name].about
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.profile, "profile", "small", "What to measure. "+strings.Join(about, "; ")+".")
	flags.IntVar(&o.objects, "objects", 0, "Number of objects; 0 is what the profile says.")
	flags.IntVar(&o.members, "members", 0, "Number of members; 0 is what the profile says.")
	flags.StringVar(&o.out, "out", filepath.Join(".cache", "bench.json"), "File for the results as JSON.")
	flags.StringVar(&o.config.Lab, "lab", o.config.Lab, "The lab's binary. Default $HANSE_LAB.")
	flags.StringVar(&o.config.Bin, "bin", o.config.Bin, "Folder with hanse-hub. Default $HANSE_BIN.")
	flags.StringVar(&o.config.Helm, "helm", o.config.Helm, "The helm binary. Default $HANSE_HELM.")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	p, ok := known[o.profile]
	if !ok {
		return o, fmt.Errorf("-profile %q is none of %v", o.profile, names)
	}
	o.measure, o.rounds = p.measure, p.rounds
	if o.objects == 0 {
		o.objects = p.objects
	}
	if o.members == 0 {
		o.members = p.members
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.objects < 1:
		return o, errors.New("-objects must be at least 1")
	case o.members < p.minMembers:
		return o, fmt.Errorf("-members must be at least %d for profile %s", p.minMembers, o.profile)
	case o.config.Lab == "" || o.config.Bin == "" || o.config.Helm == "":
		return o, errors.New("set -lab, -bin and -helm, or run make bench, which does")
	}
	return o, nil
}

// lock prevents a second benchmark on the machine until unlock is called, because each would affect the figures of the
// other. The kernel releases the lock if the process ends.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of benchmarks: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another benchmark runs on this machine and would be measured, too: it holds %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}

// run is one run of a profile.
type run struct {
	options
	dir    string // folder for the labs of the run
	result *Result
	say    func(format string, args ...any)
}

// bench runs a profile, prints the tables and writes the JSON file.
func bench(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	unlock, err := lock(filepath.Join(os.TempDir(), "hanse-bench.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	begin := time.Now()
	r := &run{options: o, result: &Result{
		Date: begin.UTC().Format(time.RFC3339), Profile: o.profile, Objects: o.objects, Members: o.members, InFlight: perMember,
		Command: fmt.Sprintf("go run ./test/bench -profile %s -objects %d -members %d", o.profile, o.objects, o.members),
	}}
	r.say = func(format string, args ...any) {
		fmt.Fprintf(out, "[%5.1fs] %s\n", time.Since(begin).Seconds(), fmt.Sprintf(format, args...))
	}
	if r.dir, err = os.MkdirTemp("", "hanse-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.dir) }()
	if r.result.Machine, err = machine(); err != nil {
		return err
	}
	sample, err := widget("bench", 0, first).MarshalJSON()
	if err != nil {
		return err
	}
	r.result.ObjectBytes = len(sample)
	err = o.measure(r, ctx)
	if r.result.empty() {
		return err
	}
	if err != nil {
		r.result.Error = err.Error()
	}
	r.result.derive()
	fmt.Fprint(out, "\n", r.result.markdown())
	return errors.Join(err, r.result.write(o.out))
}
