package events

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
	"github.com/hanse-dev/hanse/internal/answer"
)

const (
	maxHeaderBytes = 64 << 10
	// maxRequestedPause limits the pause that a receiver can request by Retry-After.
	maxRequestedPause = answer.MaxPause
)

// outcome is the result of one attempt to deliver a message to the receiver of a sink.
type outcome struct {
	// generation is the generation of the sink's spec that the attempt has used.
	generation int64
	// failure is nil if the receiver accepted the message.
	failure error
	// status is the status code of the receiver's response. It is 0 if there is none.
	status int
	// refused is true if the receiver will never accept this message, but may accept others.
	refused bool
	// after is the pause before the next attempt that the receiver requests by Retry-After. It is 0 if the receiver
	// requests none.
	after time.Duration
}

// sinkClient makes the requests for one sink, one at a time.
type sinkClient struct {
	proxy  func(*http.Request) (*url.URL, error)
	within time.Duration // timeout of one request

	client *http.Client
	ca     string // CA bundle of client
}

// errFormat is the error for a message that was made before the format of the sink changed.
var errFormat = errors.New("the sink has another format now")

// deliver makes one attempt. It reads only the status code and Retry-After of the response. Otherwise the status of a
// sink could show users the responses of servers that only the hub can reach.
func (c *sinkClient) deliver(ctx context.Context, to target, m *message) outcome {
	if m.format != to.format {
		return outcome{failure: errFormat, refused: true}
	}
	if err := c.trust(to.ca); err != nil {
		return outcome{failure: err}
	}
	body := m.body
	if to.format == hubv1.FormatPagerDuty {
		body = format.WithRoutingKey(body, to.routingKey)
	}
	trying, cancel := context.WithTimeout(ctx, c.within)
	defer cancel()
	req, err := http.NewRequestWithContext(trying, http.MethodPost, to.url, bytes.NewReader(body))
	if err != nil || req.URL.Scheme != "https" {
		return outcome{failure: errURL}
	}
	now := time.Now()
	req.Header.Set("User-Agent", "hanse-hub")
	if to.format == hubv1.FormatCloudEvents {
		req.Header.Set("Content-Type", "application/cloudevents+json; charset=UTF-8")
		req.Header.Set("Webhook-Id", m.id)
		req.Header.Set("Webhook-Timestamp", timestamp(now))
		req.Header.Set("Webhook-Signature", signature(to.keys, m.id, now, m.body))
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return outcome{failure: c.cause(trying, err)}
	}
	resp.Body.Close()
	o := judge(resp.StatusCode, resp.Header.Get("Retry-After"), now)
	o.status = resp.StatusCode
	return o
}

// judge returns the outcome for the status code of a response.
func judge(status int, retryAfter string, now time.Time) outcome {
	statusErr := fmt.Errorf("the receiver answers %d %s", status, http.StatusText(status))
	switch {
	case status >= 200 && status < 300:
		return outcome{}
	case status >= 300 && status < 400:
		return outcome{failure: fmt.Errorf("%w, and the hub follows no redirect", statusErr)}
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnsupportedMediaType,
		status == http.StatusUnprocessableEntity:
		return outcome{failure: statusErr, refused: true}
	}
	return outcome{failure: statusErr, after: pauseOf(retryAfter, now)}
}

// pauseOf returns the pause that the header Retry-After requests, either as a number of seconds or as a time. The
// result is 0 if the header has neither.
func pauseOf(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRequestedPause)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(at.Sub(now), maxRequestedPause))
	}
	return 0
}

// trust makes the client accept certificates that these CAs have signed.
func (c *sinkClient) trust(ca string) error {
	if c.client != nil && c.ca == ca {
		return nil
	}
	transport := &http.Transport{
		Proxy:                  c.proxy,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           1,
		IdleConnTimeout:        time.Minute,
	}
	if ca != "" {
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return errCA
		}
	}
	c.close()
	c.ca, c.client = ca, &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

func (c *sinkClient) close() {
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}

// cause returns an error without the URL, because the path may contain a token. It also removes details that differ at
// each attempt, such as a port, because they would change the condition each time.
func (c *sinkClient) cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the receiver did not answer within %s", c.within)
	}
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		// The original error is replaced, because its text contains the current time and therefore differs at each attempt.
		return errors.New("the receiver's certificate has expired, or is not valid yet")
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return fmt.Errorf("%s: %w", op.Op, op.Err)
	}
	if asked := (*url.Error)(nil); errors.As(err, &asked) {
		return asked.Err
	}
	return err
}
