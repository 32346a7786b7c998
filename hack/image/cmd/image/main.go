// Command image writes the container images of Hanse. hack/images.sh builds the binaries and calls it.
//
//	image build [FLAG...] NAME...   writes NAME.tar and NAME.spdx.json for each binary
//	image docker ARCHIVE PLATFORM   prints the image of one platform, as docker load reads it
//	image base                      prints the files beside the binary as a tar archive, for the Dockerfile
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"

	"github.com/hanse-dev/hanse/hack/image"
	"github.com/hanse-dev/hanse/hack/image/sbom"
)

// The settings that are the same for all images of Hanse. The charts rely on the entrypoint and the user. The
// Dockerfile sets the same values.
const (
	entrypoint = "/hanse"
	source     = "https://github.com/hanse-dev/hanse"
	license    = "Apache-2.0"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: image build|docker|base [ARG...]")
	}
	switch command, args := args[0], args[1:]; command {
	case "build":
		return build(args)
	case "docker":
		if len(args) != 2 {
			return errors.New("usage: image docker ARCHIVE PLATFORM")
		}
		return image.WriteDocker(os.Stdout, args[0], args[1])
	case "base":
		return image.WriteBase(os.Stdout)
	default:
		return fmt.Errorf("no command is called %q: use build, docker or base", command)
	}
}

// settings are the flags of build.
type settings struct {
	repository, version, revision, platforms, binaries, output string

	created time.Time
}

func build(args []string) error {
	var s settings
	flags := flag.NewFlagSet("image build", flag.ExitOnError)
	flags.StringVar(&s.repository, "repository", "", "what the names of all images begin with, such as ghcr.io/hanse-dev")
	flags.StringVar(&s.version, "version", "", "tag of the images")
	flags.StringVar(&s.revision, "revision", "", "commit that the binaries are built from")
	flags.StringVar(&s.platforms, "platforms", "", "platforms of the images, such as linux/amd64,linux/arm64")
	flags.StringVar(&s.binaries, "binaries", "", "folder with the binaries, as PLATFORM/NAME")
	flags.StringVar(&s.output, "output", "", "folder to write NAME.tar and NAME.spdx.json to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH must be the commit's time in seconds: %w", err)
	}
	s.created = time.Unix(epoch, 0).UTC()
	for _, name := range flags.Args() {
		if err := buildOne(s, name); err != nil {
			return err
		}
	}
	return nil
}

func buildOne(s settings, name string) error {
	spec := image.Spec{
		Reference:  s.repository + "/" + name + ":" + s.version,
		Entrypoint: entrypoint,
		Created:    s.created,
		Labels: map[string]string{
			"org.opencontainers.image.created":  s.created.Format(time.RFC3339),
			"org.opencontainers.image.licenses": license,
			"org.opencontainers.image.revision": s.revision,
			"org.opencontainers.image.source":   source,
			"org.opencontainers.image.title":    name,
			"org.opencontainers.image.version":  s.version,
		},
	}
	contents := sbom.Image{License: license, Created: s.created}
	for platform := range strings.SplitSeq(s.platforms, ",") {
		goos, arch, _ := strings.Cut(platform, "/")
		file := filepath.Join(s.binaries, goos, arch, name)
		binary, err := sbom.ReadBinary(platform, file)
		if err != nil {
			return err
		}
		contents.Binaries = append(contents.Binaries, binary)
		spec.Binaries = append(spec.Binaries, image.Binary{OS: goos, Arch: arch, Path: file})
	}
	var err error
	if contents.Roots, err = rootsModule(); err != nil {
		return err
	}

	archive := filepath.Join(s.output, name+".tar")
	if contents.Digest, err = image.Write(archive, spec); err != nil {
		return err
	}
	named, err := reference.ParseNamed(spec.Reference)
	if err != nil {
		return fmt.Errorf("image reference %q: %w", spec.Reference, err)
	}
	contents.Name = named.(reference.NamedTagged)
	if err := sbom.Write(filepath.Join(s.output, name+".spdx.json"), contents); err != nil {
		return err
	}
	info, err := os.Stat(archive)
	if err != nil {
		return err
	}
	fmt.Printf("%s %s %.1f MiB\n", spec.Reference, contents.Digest, float64(info.Size())/(1<<20))
	return nil
}

// rootsModule returns the module of the certificates with the version that is built into this command.
func rootsModule() (debug.Module, error) {
	build, ok := debug.ReadBuildInfo()
	if ok {
		for _, dependency := range build.Deps {
			if dependency.Path == image.RootsModule {
				return *dependency, nil
			}
		}
	}
	return debug.Module{}, fmt.Errorf("this command has no record of module %s: build it with go build", image.RootsModule)
}
