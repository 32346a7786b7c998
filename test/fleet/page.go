package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
)

// Sample is one sample of a metric on a metrics page.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Page reads a metrics page over plain HTTP.
func Page(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("reading the metrics of %s: the answer is %s", url, res.Status)
	}
	return string(raw), nil
}

// MetricsPage returns the metrics page of the cluster's API server.
func (c *Cluster) MetricsPage(ctx context.Context) (string, error) {
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return "", err
	}
	raw, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of %s: %w", c.Name, err)
	}
	return string(raw), nil
}

// Samples returns the samples of the metric with exactly this name.
func Samples(page, name string) ([]Sample, error) {
	var out []Sample
	for line := range strings.Lines(page) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '{') {
			continue
		}
		labels, number, err := parseSample(rest)
		if err != nil {
			return nil, fmt.Errorf("reading %q: %w", line, err)
		}
		out = append(out, Sample{Labels: labels, Value: number})
	}
	return out, nil
}

// parseSample reads `{a="b",c="d"} 1`, or ` 1`. It expects no time stamp, because API servers and etcd write none.
func parseSample(s string) (map[string]string, float64, error) {
	labels := map[string]string{}
	for s != "" && (s[0] == '{' || s[0] == ',') {
		name, rest, ok := strings.Cut(s[1:], "=")
		if !ok {
			return nil, 0, fmt.Errorf("no label after %q", s[:1])
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, 0, fmt.Errorf("value of label %s: %w", name, err)
		}
		if labels[name], err = strconv.Unquote(quoted); err != nil {
			return nil, 0, fmt.Errorf("value of label %s: %w", name, err)
		}
		s = rest[len(quoted):]
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(s, "}")), 64)
	return labels, number, err
}
