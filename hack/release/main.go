// Command release makes the files of a release without a network, and later uploads and signs them.
//
// Each command can be run alone. docs/release.md describes the order:
//
//	check   refuses a version that is not semantic, a dirty tree, and a changelog without notes for the version
//	files   writes to bin/release: archives of hansectl, charts, krew manifest, notes, OLM bundle, SBOMs, checksums
//	bundle  writes only the OLM bundle, and validates it
//	push    uploads images and charts, and writes their digests to pushed.json
//	sign    signs what pushed.json names and the checksums, and attests the SBOMs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// commands are sorted in the order in which a release needs them.
var commands = []struct {
	name string
	run  func(context.Context, *release) error
}{
	{"check", check},
	{"files", files},
	{"bundle", bundleOnly},
	{"push", push},
	{"sign", sign},
}

func run(ctx context.Context, args []string) error {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	if len(args) == 0 || !slices.Contains(names, args[0]) {
		return fmt.Errorf("usage: release %s [FLAG...]", strings.Join(names, "|"))
	}
	r := &release{}
	var version string
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	flags.StringVar(&version, "version", "", "version to release, such as v0.1.0")
	flags.StringVar(&r.root, "root", ".", "folder of the repository")
	flags.StringVar(&r.out, "out", "", "folder for the files (default: bin/release in the repository)")
	flags.StringVar(&r.helm, "helm", "helm", "helm binary")
	flags.StringVar(&r.registry, "registry", "ghcr.io/hanse-dev", "registry and path of images and charts")
	flags.BoolVar(&r.allowDirty, "allow-dirty", false, "accept changes that are not committed")
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	var err error
	if r.version, err = ParseVersion(version); err != nil {
		return err
	}
	if r.root, err = filepath.Abs(r.root); err != nil {
		return fmt.Errorf("finding the repository: %w", err)
	}
	if r.out == "" {
		r.out = filepath.Join(r.root, "bin", "release")
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(ctx, r)
		}
	}
	return nil
}
