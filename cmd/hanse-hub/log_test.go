package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/types"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestWhatTheLoggerWrites(t *testing.T) {
	tests := map[string]struct {
		level zapcore.Level
		log   func(logr.Logger)
		want  []map[string]any
	}{
		"a line has the fields of all loggers before it": {
			log: func(l logr.Logger) {
				l.WithName("dispatch").WithValues("cluster", "a").WithValues("binding", types.NamespacedName{Namespace: "ns", Name: "web"}).Info("Hello", "n", 1)
			},
			want: []map[string]any{{
				"level": "info", "logger": "dispatch", "msg": "Hello", "cluster": "a", "n": 1.0, "binding": map[string]any{"namespace": "ns", "name": "web"},
			}},
		},
		"two loggers of one do not share fields": {
			log: func(l logr.Logger) {
				one := l.WithValues("a", "1", "b", "2", "c", "3")
				two, three := one.WithValues("d", "two"), one.WithValues("d", "three")
				three.Info("Three")
				two.Info("Two")
				one.Info("One")
			},
			want: []map[string]any{
				{"level": "info", "msg": "Three", "a": "1", "b": "2", "c": "3", "d": "three"},
				{"level": "info", "msg": "Two", "a": "1", "b": "2", "c": "3", "d": "two"},
				{"level": "info", "msg": "One", "a": "1", "b": "2", "c": "3"},
			},
		},
		"an error is a line of its level": {
			log:  func(l logr.Logger) { l.WithValues("a", "1").Error(errors.New("no"), "Failed") },
			want: []map[string]any{{"level": "error", "msg": "Failed", "a": "1", "error": "no"}},
		},
		"above level 4, where libraries log bodies of requests and queues that change, nothing is written": {
			level: -9,
			log: func(l logr.Logger) {
				for v := 4; v <= 10; v++ {
					if l := l.WithValues("a", "1").V(v); l.Enabled() {
						l.Info("Body", "v", v)
					}
				}
			},
			want: []map[string]any{{"level": "Level(-4)", "msg": "Body", "a": "1", "v": 4.0}},
		},
		"of the starts of controller-runtime nothing is written": {
			log: func(l logr.Logger) {
				l.WithValues("controller", "schedule").Info("Starting workers", "worker count", 4)
				l.Info("Starting EventSource")
				l.Error(errors.New("no"), "Starting Controller")
			},
			want: []map[string]any{{"level": "error", "msg": "Starting Controller", "error": "no"}},
		},
		"what the level leaves out is not written": {
			log: func(l logr.Logger) { l.WithValues("a", "1").V(1).Info("Not this") },
		},
		"what the level lets in is": {
			level: zapcore.DebugLevel,
			log:   func(l logr.Logger) { l.WithValues("a", "1").V(1).Info("This") },
			want:  []map[string]any{{"level": "debug", "msg": "This", "a": "1"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tc.log(newLogger(&ctrlzap.Options{DestWriter: &out, Level: tc.level, StacktraceLevel: zapcore.PanicLevel}))
			if diff := cmp.Diff(tc.want, lines(t, out.String())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRepeatedLinesAreSampledWhateverTheirFields(t *testing.T) {
	var out bytes.Buffer
	l := newLogger(&ctrlzap.Options{DestWriter: &out})
	for i := range 1000 {
		l.WithValues("i", i).Info("The same again")
	}
	// In each second, the first 100 lines are logged, and then each 100th line. The test may take longer than a second.
	if n := len(lines(t, out.String())); n < 109 || n > 600 {
		t.Errorf("%d lines of 1000, want the sampling of a production logger", n)
	}
}

// lines parses the logged lines, without their times.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%q: %s", line, err)
		}
		delete(fields, "ts")
		out = append(out, fields)
	}
	return out
}

// BenchmarkLoggerOfAReconcile measures the logger of a reconcile that logs no line.
func BenchmarkLoggerOfAReconcile(b *testing.B) {
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	loggers := map[string]logr.Logger{
		"ours":    newLogger(&ctrlzap.Options{DestWriter: io.Discard}),
		"eagerly": ctrlzap.New(ctrlzap.UseFlagOptions(&ctrlzap.Options{DestWriter: io.Discard})),
	}
	for name, l := range loggers {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.WithName("dispatch").WithValues("cluster", "a").WithValues("binding", key).WithValues("reconcileID", "5b8f").V(5).Info("Reconciling")
			}
		})
	}
}
