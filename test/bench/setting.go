package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/test/fleet"
)

// topology writes a topology file with a hub and this number of members, based on lab/topologies/bench.yaml. It returns
// the path of the file.
func topology(dir string, members int) (string, error) {
	pattern := filepath.Join("lab", "topologies", "bench.yaml")
	raw, err := os.ReadFile(pattern)
	if err != nil {
		return "", fmt.Errorf("reading the topology (the benchmark runs in the repository's root): %w", err)
	}
	raw, err = resize(raw, members)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", pattern, err)
	}
	path := filepath.Join(dir, "topology.yaml")
	return path, os.WriteFile(path, raw, 0o600)
}

// resize returns a topology with this number of members. Each member is a copy of the first one with another region.
func resize(raw []byte, members int) ([]byte, error) {
	var t struct {
		Clusters []map[string]any `json:"clusters"`
	}
	if err := yaml.Unmarshal(raw, &t); err != nil {
		return nil, err
	}
	var hub, first map[string]any
	for _, c := range t.Clusters {
		switch {
		case c["hub"] == true:
			hub = c
		case first == nil:
			first = c
		}
	}
	if hub == nil || first == nil {
		return nil, fmt.Errorf("%d clusters, want a hub and a member at least", len(t.Clusters))
	}
	t.Clusters = []map[string]any{hub}
	for i := range members {
		c := map[string]any{}
		for k, v := range first {
			c[k] = v
		}
		c["name"] = fmt.Sprintf("member-%d", i+1)
		c["region"] = fmt.Sprintf("region-%d", i+1)
		c["zones"] = []string{fmt.Sprintf("region-%da", i+1)}
		t.Clusters = append(t.Clusters, c)
	}
	return yaml.Marshal(t)
}

// Versions has the versions of the programs that a benchmark uses.
type Versions struct {
	Hanse      string `json:"hanse"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Go         string `json:"go"`
}

// versions reads the versions of the programs, once per run.
func (s *setting) versions(ctx context.Context) error {
	v := Versions{Go: runtime.Version()}
	out, err := exec.CommandContext(ctx, filepath.Join(s.config.Bin, "hanse-hub"), "--version").Output()
	if err != nil {
		return fmt.Errorf("asking hanse-hub for its version: %w", err)
	}
	v.Hanse = strings.TrimSpace(string(out))
	api, err := discovery.NewDiscoveryClientForConfig(s.Hub.Config)
	if err != nil {
		return err
	}
	kubernetes, err := api.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the hub's API server for its version: %w", err)
	}
	v.Kubernetes = kubernetes.GitVersion
	page, err := fleet.Page(ctx, s.HubEtcdMetrics)
	if err != nil {
		return err
	}
	samples, err := fleet.Samples(page, "etcd_server_version")
	if err != nil {
		return err
	}
	for _, sample := range samples {
		v.Etcd = sample.Labels["server_version"]
	}
	s.result.Versions = v
	return nil
}
