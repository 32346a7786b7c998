package fleet

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// Metric sums the samples of a Prometheus metrics page whose line starts with the given name and holds every given label text.
func Metric(ctx context.Context, page, name string, labels ...string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	sum := 0.0
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		rest, ok := strings.CutPrefix(line, name)
		if !ok || (rest[0] != ' ' && rest[0] != '{') || !containsAll(rest, labels) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("reading metric %s: %w", name, err)
		}
		sum += value
	}
	return sum, lines.Err()
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// HubWrites counts what reached the hub's etcd so far, by resource: creates, updates and deletes. Source: the API server's
// own metric of its etcd requests.
func (f *Fleet) HubWrites(ctx context.Context) (map[string]float64, error) {
	clients, err := kubernetes.NewForConfig(f.Hub.Config)
	if err != nil {
		return nil, err
	}
	raw, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the hub's metrics: %w", err)
	}
	out := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		labels, ok := strings.CutPrefix(line, "etcd_request_duration_seconds_count{")
		if !ok || !isWrite(labels) {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", line, err)
		}
		out[resourceLabel(labels)] += value
	}
	return out, nil
}

func isWrite(labels string) bool {
	for _, op := range []string{"create", "update", "delete"} {
		if strings.Contains(labels, `operation="`+op+`"`) {
			return true
		}
	}
	return false
}

// resourceLabel is "resource.group" from the labels of a metric.
func resourceLabel(labels string) string {
	value := func(name string) string {
		_, rest, ok := strings.Cut(","+labels, ","+name+`="`)
		if !ok {
			return ""
		}
		v, _, _ := strings.Cut(rest, `"`)
		return v
	}
	if group := value("group"); group != "" {
		return value("resource") + "." + group
	}
	return value("resource") + value("type")
}
