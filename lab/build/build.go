package build

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Ensure returns the built components of source, the components folder, and compiles missing components into cache. It
// writes its progress to progress, and writes nothing if all components are built. Without names, it builds the
// components that every lab needs.
func Ensure(ctx context.Context, source, cache string, progress io.Writer, names ...string) (Built, error) {
	all, err := needed(names)
	if err != nil {
		return Built{}, err
	}
	k, err := key(source, all)
	if err != nil {
		return Built{}, err
	}
	built := Built{dir: filepath.Join(cache, k)}
	if complete(built) {
		return built, nil
	}
	unlock, err := lock(cache)
	if err != nil {
		return Built{}, err
	}
	defer unlock()
	if complete(built) { // another process built it while this one waited for the lock
		return built, nil
	}
	if err := assemble(ctx, source, cache, built, all, progress); err != nil {
		return Built{}, err
	}
	return built, nil
}

// complete reports whether the build of the components has finished. The function assemble creates the folder bin as
// its last step.
func complete(b Built) bool {
	_, err := os.Stat(b.Bin())
	return err == nil
}

// stopTimeout is how long an interrupted go command may take to end.
const stopTimeout = 10 * time.Second

// lock waits for the lock of the cache, so that only one process builds at a time. It also creates a .gitignore in the
// cache.
func lock(cache string) (unlock func(), err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	if err := os.WriteFile(filepath.Join(cache, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(cache, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("locking the cache: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

// assemble compiles the components and puts links to their programs in bin.
func assemble(ctx context.Context, source, cache string, built Built, components []component, progress io.Writer) error {
	bin := built.Bin() + ".partial"
	if err := os.RemoveAll(built.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	start := time.Now()
	for i, c := range components {
		k, err := c.key(source)
		if err != nil {
			return err
		}
		folder := c.name + "-" + k
		c := job{component: c, dir: filepath.Join(source, c.name), binary: filepath.Join(cache, folder, c.name), progress: progress}
		c.label = fmt.Sprintf("[%d/%d] %s", i+1, len(components), c.name)
		version, err := c.run(ctx, filepath.Join(built.dir, "share"))
		if err != nil {
			return fmt.Errorf("building component %q: %w", c.name, err)
		}
		for _, program := range c.programs {
			if err := os.Symlink(filepath.Join("..", "..", folder, c.name), filepath.Join(bin, fill(version).Replace(program))); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(progress, "all components built in %s\n", time.Since(start).Round(time.Second))
	return os.Rename(bin, built.Bin())
}

// job is the build of one component.
type job struct {
	component
	dir, binary string
	label       string
	progress    io.Writer
}

// module has the fields of `go mod download -json` that the build uses.
type module struct{ Version, Dir string }

// run builds the component and returns its version. The version is empty if the source is part of the lab.
func (j job) run(ctx context.Context, share string) (version string, err error) {
	var m module
	if j.module != "" {
		if err := j.download(ctx, &m); err != nil {
			return "", err
		}
		if err := j.copyShare(m, share); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(j.binary); err == nil {
		fmt.Fprintf(j.progress, "%s %s: in the cache\n", j.label, m.Version)
		return m.Version, nil
	}
	return m.Version, j.compile(ctx, m)
}

// download downloads the component's module and stores its version and folder in m.
func (j job) download(ctx context.Context, m *module) error {
	if out, err := j.goCommand(ctx, "mod", "download", j.module).CombinedOutput(); err != nil {
		return failure("downloading "+j.module, out, err)
	}
	out, err := j.goCommand(ctx, "list", "-m", "-json", j.module).Output()
	if err != nil {
		return failure("finding "+j.module, out, err)
	}
	if err := json.Unmarshal(out, m); err != nil {
		return fmt.Errorf("reading what is known of %s: %w", j.module, err)
	}
	return nil
}

// compile builds into a temporary file and renames it, so that an existing binary is always complete.
func (j job) compile(ctx context.Context, m module) error {
	linker := strings.Join(append([]string{"-s", "-w"}, j.stamp(m.Version)...), " ")
	packages, err := j.goCommand(ctx, "list", "-tags", j.tags, "-deps", j.pkg).Output()
	if err != nil {
		return failure("listing packages", packages, err)
	}
	partial := j.binary + ".partial"
	cmd := j.goCommand(ctx, "build", "-v", "-buildvcs=false", "-trimpath", "-tags", j.tags, "-ldflags", linker, "-o", partial, j.pkg)
	watch := newMeter(j.progress, j.label+" "+m.Version, bytes.Count(packages, []byte("\n")))
	cmd.Stdout, cmd.Stderr = watch, watch
	err = cmd.Run()
	watch.stop(err)
	if ctx.Err() != nil {
		return fmt.Errorf("compiling: %w", ctx.Err())
	}
	if err != nil {
		return failure("compiling", watch.tail(), err)
	}
	return os.Rename(partial, j.binary)
}

// stamp returns the linker flags that set the module's version in the programs.
func (j job) stamp(version string) []string {
	if len(j.stamps) == 0 {
		return nil
	}
	with := fill(version)
	var flags []string
	for _, variable := range slices.Sorted(maps.Keys(j.stamps)) {
		flags = append(flags, "-X", variable+"="+with.Replace(j.stamps[variable]))
	}
	return flags
}

// goCommand returns a go command that runs in the component's module and ignores the caller's workspace and flags.
func (j job) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = j.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	// An interrupt also ends the compilers that the go command started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	return cmd
}

// copyShare copies the module's manifests and charts beside the binaries, so that the start of a lab downloads nothing.
func (j job) copyShare(m module, share string) error {
	for folder, glob := range j.share {
		files, err := filepath.Glob(filepath.Join(m.Dir, glob))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("module %s %s has no %s", j.module, m.Version, glob)
		}
		to := filepath.Join(share, fill(m.Version).Replace(folder))
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		for _, file := range files {
			if err := copyTo(filepath.Join(to, filepath.Base(file)), file); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyTo copies a file, or a folder with all that it contains.
func copyTo(to, from string) error {
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

func failure(doing string, output []byte, err error) error {
	return fmt.Errorf("%s: %w\n%s", doing, err, bytes.TrimSpace(output))
}
