package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	answers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hanse_console_pages_total",
		Help: "Requests of browsers to the console, by the page's path and the class of the response's HTTP status, such as 2xx.",
	}, []string{"page", "code"})
	openStreams = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hanse_console_streams",
		Help: "Pages of the console that are open in browsers and are updated after changes.",
	})
)

// Metrics are the collectors of this package, from which docs/metrics.md is generated.
var Metrics = []prometheus.Collector{answers, openStreams}

func init() { metrics.Registry.MustRegister(Metrics...) }

// counted counts the responses of a ServeMux by path pattern instead of path, so that there are few time series.
func counted(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answerOf{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			_, page, _ := strings.Cut(strings.TrimSuffix(r.Pattern, "{$}"), " ") // the pattern without the method
			if page == "" || r.Pattern == anyOther {
				page = "other"
			}
			answers.WithLabelValues(page, strconv.Itoa(answer.status/100)+"xx").Inc()
		}()
		mux.ServeHTTP(answer, r)
	})
}

// answerOf records the status code of a response.
type answerOf struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answerOf) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (a *answerOf) Unwrap() http.ResponseWriter { return a.ResponseWriter }
