package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// release has the values of the command's flags.
type release struct {
	version    Version
	root       string // the folder of the repository
	out        string
	helm       string
	registry   string
	allowDirty bool
}

// images returns the folder into which `make images` writes the OCI archives and SBOMs.
func (r *release) images() string { return filepath.Join(r.root, "bin", "images") }

// check does the quick checks of a release, before anything is built. It fails if the tree has changes that are not
// committed, or if the changelog has no release notes.
func check(ctx context.Context, r *release) error {
	if !r.allowDirty {
		changes, err := r.command(ctx, nil, "git", "status", "--porcelain")
		if err != nil {
			return err
		}
		if changes != "" {
			return fmt.Errorf("the tree has changes that are not committed: commit them, or pass ALLOW_DIRTY=1 for a trial:\n%s", changes)
		}
	}
	_, _, err := r.notes()
	return err
}

// files writes all files of a release that can be made without a network.
func files(ctx context.Context, r *release) error {
	if err := check(ctx, r); err != nil {
		return err
	}
	if _, err := r.imageArchives(); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("removing the files of an earlier run: %w", err)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return fmt.Errorf("making the folder for the files: %w", err)
	}
	when, err := r.commitTime(ctx)
	if err != nil {
		return err
	}
	notes, section, err := r.notes()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, "notes.md"), []byte(notes), 0o644); err != nil {
		return fmt.Errorf("writing the release notes: %w", err)
	}
	archives, err := r.buildArchives(ctx, when)
	if err != nil {
		return err
	}
	if err := r.writeKrewManifest(archives); err != nil {
		return err
	}
	for _, chart := range charts {
		if _, err := r.packageChart(ctx, chart, r.out, when); err != nil {
			return err
		}
	}
	if err := r.writeBundle(ctx, when); err != nil {
		return err
	}
	if err := r.copySBOMs(); err != nil {
		return err
	}
	if err := writeSums(r.out); err != nil {
		return err
	}
	return r.summarize(os.Stdout, section)
}

// notes returns the release notes of the version, and the heading of their section in the changelog.
func (r *release) notes() (notes, section string, err error) {
	path := filepath.Join(r.root, "CHANGELOG.md")
	changelog, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("reading the changelog: %w", err)
	}
	notes, section, err = CutNotes(string(changelog), r.version)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	return notes, section, nil
}

// commitTime returns the time of the commit. All files in archives have this time, so that two builds of a commit give
// the same bytes.
func (r *release) commitTime(ctx context.Context) (time.Time, error) {
	out, err := r.command(ctx, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the time of the last commit: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// command runs a program in the repository and returns its output, without leading and trailing spaces.
func (r *release) command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, &stdout, &stderr
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
		}
		return "", fmt.Errorf("running %s: %w", name, err)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// inFolder runs a function with a temporary folder, and removes the folder afterwards.
func inFolder(do func(folder string) error) (err error) {
	folder, err := os.MkdirTemp("", "hanse-release-")
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	return do(folder)
}
