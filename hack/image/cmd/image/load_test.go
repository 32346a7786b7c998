package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImagesAreLoadedWhereContainersRun runs hack/images-load.sh with fake commands that record their arguments.
func TestImagesAreLoadedWhereContainersRun(t *testing.T) {
	const (
		missing    = "exit 127"
		node       = `if [ "$1" = namespaces ]; then echo default; echo k8s.io; fi`
		dockerHost = `if [ "$1" = namespaces ]; then echo moby; fi`
		daemon     = `if [ "$1" = version ]; then echo linux/arm64; else cat >/dev/null; fi`
	)
	tests := map[string]struct {
		kindCluster, kind, ctr, docker string

		want   []string
		says   string
		refuse string
	}{
		"a named kind cluster is preferred to all others": {
			kindCluster: "hub", ctr: node, docker: daemon,
			want: []string{"kind load image-archive ARCHIVE --name hub"},
			says: "loaded ARCHIVE into the kind cluster hub",
		},
		"the containerd of a node is preferred to docker": {
			kind: missing, ctr: node, docker: daemon,
			want: []string{"ctr namespaces ls --quiet", "ctr --namespace k8s.io images import ARCHIVE"},
			says: "imported ARCHIVE into containerd, namespace k8s.io",
		},
		"docker gets the image of its own platform, and its containerd does not": {
			kind: missing, ctr: dockerHost, docker: daemon,
			want: []string{
				"ctr namespaces ls --quiet", "docker version --format {{.Server.Os}}/{{.Server.Arch}}",
				"docker load", "go run -C hack/image ./cmd/image docker ARCHIVE linux/arm64",
			},
			says: "loaded the image for linux/arm64 of ARCHIVE into docker",
		},
		"a machine without containers is refused": {
			kind: missing, ctr: missing, docker: missing,
			want:   []string{"ctr namespaces ls --quiet", "docker version --format {{.Server.Os}}/{{.Server.Arch}}"},
			refuse: "nothing on this machine takes images",
		},
		"a kind cluster that does not exist is refused, although docker is there": {
			kindCluster: "hub", kind: missing, ctr: node, docker: daemon,
			want: []string{"kind load image-archive ARCHIVE --name hub"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			archive := filepath.Join(folder, "hanse-hub.tar")
			if err := os.WriteFile(archive, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			calls := filepath.Join(folder, "calls")
			for command, body := range map[string]string{"kind": test.kind, "ctr": test.ctr, "docker": test.docker, "go": ""} {
				script := "#!/bin/sh\necho " + command + " \"$@\" >>" + calls + "\n" + body + "\n"
				if err := os.WriteFile(filepath.Join(folder, command), []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			out, log, err := load(t, folder, test.kindCluster, archive)
			if (err != nil) != (test.says == "") {
				t.Errorf("the error is %v: %s", err, log)
			}
			if want := strings.ReplaceAll(test.says, "ARCHIVE", archive); !strings.Contains(out, want) {
				t.Errorf("it said %q, want %q", out, want)
			}
			if !strings.Contains(log, test.refuse) {
				t.Errorf("the error is %q, want one with %q", log, test.refuse)
			}
			got, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			// docker load and the command before it in the pipe start in any order.
			lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(got), archive, "ARCHIVE")), "\n")
			if n := len(lines); n == 4 && lines[2] > lines[3] {
				lines[2], lines[3] = lines[3], lines[2]
			}
			if diff := cmp.Diff(test.want, lines); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}

	t.Run("a build that did not run is named", func(t *testing.T) {
		_, log, err := load(t, t.TempDir(), "", "bin/images/none.tar")
		if err == nil || !strings.Contains(log, "there is no archive bin/images/none.tar: run make images first") {
			t.Errorf("the error is %v: %s", err, log)
		}
	})
}

// load runs the script with a PATH on which the folder comes first.
func load(t *testing.T, folder, kindCluster, archive string) (string, string, error) {
	t.Helper()
	var out, log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "../../../images-load.sh", archive)
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "KIND_CLUSTER="+kindCluster)
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	return out.String(), log.String(), err
}
