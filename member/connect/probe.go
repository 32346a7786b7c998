package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	watchKubeSystem = "/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3Dkube-system&resourceVersion=0&timeoutSeconds=60"
	getKubeSystem   = "/api/v1/namespaces/kube-system"
	asJSON          = "application/json"
	maxID           = 64
	maxEvent        = 1 << 20  // the event of kube-system must arrive within so many bytes
	muchWithout     = 64 << 10 // bytes without an event; buffers of proxies are smaller
)

// errStalled means that the cluster answers requests but its watches deliver no events.
var errStalled = errors.New("the watch delivered nothing")

// errStrange means that the server is not a Kubernetes API server.
var errStrange = errors.New("the answer is not that of a Kubernetes API server")

// statusError is a response with an HTTP status other than 200.
type statusError struct {
	code       int
	message    string        // from the server's Status; empty if the server sent none
	retryAfter time.Duration // zero if the server did not ask for a delay
}

func (e *statusError) Error() string {
	if e.message == "" {
		return fmt.Sprintf("%d %s", e.code, http.StatusText(e.code))
	}
	return fmt.Sprintf("%d %s: %s", e.code, http.StatusText(e.code), e.message)
}

// probe checks that the watches of the cluster deliver events. A watch from resourceVersion 0 begins with the existing
// objects, so that an event of the namespace kube-system must arrive at once. probe returns the UID of this namespace.
func probe(ctx context.Context, l *line, server string, timeout time.Duration) (string, error) {
	id, err := firstEvent(ctx, l, server, timeout)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return id, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout/2)
	defer cancel()
	body, err := ask(ctx, requestClient(l), server+getKubeSystem)
	if err != nil {
		return "", err
	}
	_ = body.Close()
	return "", errStalled
}

func firstEvent(ctx context.Context, l *line, server string, timeout time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := ask(ctx, probeClient(l), server+watchKubeSystem)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	answer := &io.LimitedReader{R: body, N: maxEvent}
	decoder := json.NewDecoder(answer)
	for {
		var event struct {
			Type   string
			Object struct {
				Metadata struct{ Name, UID string }
				Code     int
				Message  string
			}
		}
		if err := decoder.Decode(&event); err != nil {
			if ctx.Err() != nil && maxEvent-answer.N < muchWithout {
				return "", ctx.Err()
			}
			return "", fmt.Errorf("%w: %v", errStrange, printable(err.Error()))
		}
		switch event.Type {
		case "ERROR":
			return "", &statusError{code: event.Object.Code, message: printable(event.Object.Message)}
		case "ADDED", "MODIFIED":
			if id := event.Object.Metadata.UID; event.Object.Metadata.Name == metav1.NamespaceSystem && id != "" && len(id) <= maxID {
				return id, nil
			}
			return "", errStrange
		}
	}
}

// ask sends a GET request. It returns the body of a response with status 200, and an error for any other status.
func ask(ctx context.Context, client *http.Client, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", asJSON)
	req.Header.Set("User-Agent", userAgent)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	failed := &statusError{code: resp.StatusCode}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		failed.retryAfter = min(time.Duration(seconds)*time.Second, time.Minute)
	}
	var status metav1.Status
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<10)).Decode(&status); err == nil && status.Kind == "Status" {
		failed.message = printable(status.Message)
	}
	return nil, failed
}
