package main_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spdx/tools-golang/json"
)

// command is the path of the built command. It also serves as the binary in the images of these tests.
var command string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		folder, err := os.MkdirTemp("", "hanse-image-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		command = filepath.Join(folder, "image")
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", command, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(string(out))
		}
		return m.Run()
	}())
}

// run runs the command with a fixed time of the commit. It returns its output, its error output and its error.
func run(t *testing.T, args ...string) (string, string, error) {
	t.Helper()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), command, args...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	return out.String(), log.String(), err
}

// arguments returns the flags for a build of one image for the platform of this machine.
func arguments(t *testing.T, binaries, output string) []string {
	t.Helper()
	folder := filepath.Join(binaries, "linux", runtime.GOARCH)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(command)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "hanse-hub"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"build", "-repository", "ghcr.io/hanse-dev", "-version", "0.1.0", "-revision", "0123abc",
		"-platforms", "linux/" + runtime.GOARCH, "-binaries", binaries, "-output", output, "hanse-hub",
	}
}

func TestBuildWritesAnArchiveAndItsContents(t *testing.T) {
	output := t.TempDir()
	out, log, err := run(t, arguments(t, t.TempDir(), output)...)
	if err != nil {
		t.Fatal(log)
	}
	words := strings.Fields(out)
	if len(words) != 4 || words[0] != "ghcr.io/hanse-dev/hanse-hub:0.1.0" || !strings.HasPrefix(words[1], "sha256:") {
		t.Errorf("it printed %q", out)
	}

	t.Run("docker reads the image of one platform, with its name and labels", func(t *testing.T) {
		archive := filepath.Join(t.TempDir(), "docker.tar")
		out, log, err := run(t, "docker", filepath.Join(output, "hanse-hub.tar"), "linux/"+runtime.GOARCH)
		if err != nil {
			t.Fatal(log)
		}
		if err := os.WriteFile(archive, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		tag := name.MustParseReference("ghcr.io/hanse-dev/hanse-hub:0.1.0").(name.Tag)
		img, err := tarball.ImageFromPath(archive, &tag)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(config.Config.Entrypoint, []string{"/hanse"}) || config.Config.User != "65532:65532" {
			t.Errorf("the image runs %v as %s", config.Config.Entrypoint, config.Config.User)
		}
		checkDockerfile(t, config.Config)
		if diff := cmp.Diff(map[string]string{
			"org.opencontainers.image.created":  "2023-11-14T22:13:20Z",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.revision": "0123abc",
			"org.opencontainers.image.source":   "https://github.com/hanse-dev/hanse",
			"org.opencontainers.image.title":    "hanse-hub",
			"org.opencontainers.image.version":  "0.1.0",
		}, config.Config.Labels); diff != "" {
			t.Errorf("labels (-want +got):\n%s", diff)
		}
	})
	t.Run("docker gets no image of a platform that the archive lacks", func(t *testing.T) {
		_, log, err := run(t, "docker", filepath.Join(output, "hanse-hub.tar"), "linux/riscv64")
		if err == nil || !strings.Contains(log, "it has no image for linux/riscv64") {
			t.Errorf("the error is %v: %s", err, log)
		}
	})
	t.Run("the contents name the image by its digest, and the bundle of certificates by its version", func(t *testing.T) {
		file, err := os.Open(filepath.Join(output, "hanse-hub.spdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		document, err := json.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(document.DocumentNamespace, "@"+words[1]) {
			t.Errorf("the namespace is %s, and the digest %s", document.DocumentNamespace, words[1])
		}
		pinned, err := os.ReadFile("../../go.mod")
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range document.Packages {
			if p.PackageName == "golang.org/x/crypto/x509roots/fallback" {
				found = strings.Contains(string(pinned), p.PackageName+" "+p.PackageVersion)
			}
		}
		if !found {
			t.Error("no package is the bundle of certificates at the version of go.mod")
		}
	})
	t.Run("a second build from another folder writes the same files", func(t *testing.T) {
		again := t.TempDir()
		if _, log, err := run(t, arguments(t, t.TempDir(), again)...); err != nil {
			t.Fatal(log)
		}
		for _, file := range []string{"hanse-hub.tar", "hanse-hub.spdx.json"} {
			first, err := os.ReadFile(filepath.Join(output, file))
			if err != nil {
				t.Fatal(err)
			}
			second, err := os.ReadFile(filepath.Join(again, file))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, second) {
				t.Errorf("two builds of %s differ", file)
			}
		}
	})
}

// checkDockerfile fails the test unless the Dockerfile sets the labels, user and entrypoint of this image config.
func checkDockerfile(t *testing.T, config v1.Config) {
	t.Helper()
	content, err := os.ReadFile("../../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"\nUSER " + config.User + "\n", "\nENTRYPOINT [\"" + strings.Join(config.Entrypoint, `", "`) + "\"]\n"}
	for label := range config.Labels {
		want = append(want, " "+label+"=")
	}
	for _, line := range want {
		if !strings.Contains(string(content), line) {
			t.Errorf("the Dockerfile does not say %q", strings.TrimSpace(line))
		}
	}
}

func TestBadInputIsNamedAndWritesNothing(t *testing.T) {
	tests := map[string]struct {
		args []string // appended to the flags of a good build, because the last value of a flag is used
		env  string
		want string
	}{
		"a version that is no tag":     {args: []string{"-version", "0.1.0+build"}, want: `"ghcr.io/hanse-dev/hanse-hub:0.1.0+build"`},
		"a platform without a binary":  {args: []string{"-platforms", "linux/riscv64"}, want: "binary for linux/riscv64"},
		"a binary that does not exist": {args: []string{"hansectl"}, want: "hansectl: no such file"},
		"no time of the commit":        {env: "SOURCE_DATE_EPOCH=", want: "SOURCE_DATE_EPOCH"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			output := t.TempDir()
			args := arguments(t, t.TempDir(), output)
			if len(test.args) > 0 && !strings.HasPrefix(test.args[0], "-") {
				args = args[:len(args)-1]
				args = append(args, test.args...)
			} else {
				args = slices.Insert(args, len(args)-1, test.args...)
			}
			var log bytes.Buffer
			cmd := exec.CommandContext(t.Context(), command, args...)
			cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000", test.env)
			cmd.Stderr = &log
			if err := cmd.Run(); err == nil || !strings.Contains(log.String(), test.want) {
				t.Errorf("the error is %v, want one with %q: %s", err, test.want, log.String())
			}
			if left, err := os.ReadDir(output); err != nil || len(left) > 0 {
				t.Errorf("the folder holds %v, %v", left, err)
			}
		})
	}
}

func TestBasePrintsTheFilesBesideTheBinary(t *testing.T) {
	out, log, err := run(t, "base")
	if err != nil {
		t.Fatal(log)
	}
	var files []string
	for archive := tar.NewReader(strings.NewReader(out)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, header.Name)
	}
	if diff := cmp.Diff([]string{
		"etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt",
	}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
