package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeepRetryAfter wraps the transport of an Applier's client. client-go repeats a request up to ten times if the
// response has a Retry-After header. If a member throttles, these retries would block the worker until its deadline,
// and the member would seem to be unreachable. The wrapper moves the delay from the header into the body, where the
// caller reads it.
func KeepRetryAfter(next http.RoundTripper) http.RoundTripper { return keepRetryAfter{next} }

type keepRetryAfter struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (k keepRetryAfter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := k.next.RoundTrip(r)
	if err != nil || response.StatusCode < 500 && response.StatusCode != http.StatusTooManyRequests {
		return response, err
	}
	seconds, ok := delay(response.Header)
	if !ok {
		return response, nil
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(response.StatusCode), Message: http.StatusText(response.StatusCode),
		Reason:  metav1.StatusReasonServiceUnavailable,
		Details: &metav1.StatusDetails{RetryAfterSeconds: int32(min(max(seconds, 0), 3600))},
	}
	if response.StatusCode == http.StatusTooManyRequests {
		status.Reason = metav1.StatusReasonTooManyRequests
	}
	_ = response.Body.Close()
	body, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("writing a Status of code %d: %w", response.StatusCode, err)
	}
	response.Header.Del("Retry-After")
	response.Header.Del("Content-Encoding")
	response.Header.Set("Content-Type", "application/json")
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	response.ContentLength = int64(len(body))
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// delay parses the Retry-After header as a number of seconds. Like client-go, it does not accept a date.
func delay(h http.Header) (seconds int, ok bool) {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	return seconds, err == nil
}
