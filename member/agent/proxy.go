package agent

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newProxy returns the handler of the hub's requests. It passes those that no rule of the filter refuses on to the API
// server at the URL. transport adds the credentials of the agent, which the hub never sees.
func newProxy(server *url.URL, transport http.RoundTripper, logger logr.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // events of a watch must not wait
		ErrorLog:      log.New(discard{}, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
			r.Out.Host = server.Host
			r.Out.Header = http.Header{}
			for _, name := range passed {
				if values := r.In.Header.Values(name); len(values) > 0 {
					r.Out.Header[name] = values
				}
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			var large *http.MaxBytesError
			if errors.As(err, &large) {
				answer(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "the body is too large")
				return
			}
			if r.Context().Err() == nil {
				logger.Info("The API server does not answer", "method", r.Method, "path", r.URL.Path, "error", err.Error())
			}
			answer(w, http.StatusBadGateway, metav1.StatusReasonServiceUnavailable, "the agent cannot reach its API server: "+err.Error())
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := refusal(r); why != "" {
			logger.Info("Refused a request of the hub", "method", r.Method, "path", r.URL.Path, "reason", why)
			answer(w, http.StatusForbidden, metav1.StatusReasonForbidden, why)
			return
		}
		if r.Method != http.MethodGet {
			logger.V(1).Info("Write of the hub", "method", r.Method, "path", r.URL.Path)
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		proxy.ServeHTTP(w, r)
	})
}

// answer sends a Status, as an API server does.
func answer(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: reason, Message: message, Code: int32(code),
	})
}

// discard drops the lines that package net/http logs about aborted requests. They have no bound.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }
