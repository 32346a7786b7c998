package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Prometheus is a running Prometheus of the version that the lab pins.
type Prometheus struct {
	address string
	cmd     *exec.Cmd
	ended   chan struct{}
}

// Series is one series in a response of Prometheus.
type Series struct {
	Metric map[string]string `json:"metric"`
}

// StartPrometheus starts a Prometheus with the given configuration and rules, and waits until it answers. The caller
// must kill it. dir is the folder for its files.
func (f *Fleet) StartPrometheus(ctx context.Context, dir string, config, rules any) (*Prometheus, error) {
	bin, err := f.LabCommand(ctx, "build", "prometheus", "--print-bin")
	if err != nil {
		return nil, err
	}
	for name, content := range map[string]any{"prometheus.yaml": config, "rules.yaml": rules} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "prometheus.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p := &Prometheus{address: "http://" + address, ended: make(chan struct{})}
	p.cmd = exec.Command(filepath.Join(strings.TrimSpace(bin), "prometheus"), "--config.file", filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting prometheus: %w", err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	return p, p.waitReady(ctx, log.Name())
}

func (p *Prometheus) waitReady(ctx context.Context, log string) error {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if code, answers := status(ctx, p.address+"/-/ready"); answers && code == http.StatusOK {
			return nil
		}
		select {
		case <-p.ended:
			raw, _ := os.ReadFile(log)
			return fmt.Errorf("prometheus ended before it was ready: %w: %s", errEnded, tail(string(raw), 2000))
		case <-ctx.Done():
			return errors.New("prometheus is not ready after 60 s")
		case <-tick.C:
		}
	}
}

// Kill kills the process.
func (p *Prometheus) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Query returns the series of an instant query.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	page, err := Page(ctx, p.address+"/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return nil, fmt.Errorf("querying %s: %w", expr, err)
	}
	var answer struct {
		Data struct {
			Result []Series `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(page), &answer); err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", expr, err)
	}
	return answer.Data.Result, nil
}

// PrometheusRules returns the spec of the PrometheusRule that the hub chart renders. set has arguments for --set-json,
// because --set would turn fractions into texts.
func (f *Fleet) PrometheusRules(ctx context.Context, set ...string) (map[string]any, error) {
	args := []string{"template", hubRelease, filepath.Join(f.Charts, "hanse-hub"), "--namespace", hubv1.SystemNamespace,
		"--show-only", "templates/metrics.yaml", "--set", "metrics.prometheusRule.enabled=true"}
	for _, value := range set {
		args = append(args, "--set-json", value)
	}
	text, err := f.HelmCommand(ctx, f.Hub, args...)
	if err != nil {
		return nil, err
	}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o struct {
			Kind string         `json:"kind"`
			Spec map[string]any `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return nil, fmt.Errorf("reading the rendered chart: %w", err)
		}
		if o.Kind == "PrometheusRule" {
			return o.Spec, nil
		}
	}
	return nil, errors.New("the chart renders no PrometheusRule")
}
