package main

import (
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// newLogger returns the logger of the process. It encodes fields only when a line is logged. Every reconcile gets a
// logger with its own fields, and few reconciles log a line.
func newLogger(o *ctrlzap.Options) logr.Logger {
	return ctrlzap.New(ctrlzap.UseFlagOptions(o), ctrlzap.RawZapOpts(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return &lazyCore{Core: core}
	})))
}

// lazyCore collects the fields of a logger, and encodes them when the first line is logged. With zapcore.NewLazyWith
// instead, a second call of With would encode the fields of the first call. A value that is passed to WithValues must
// not be changed afterwards, because it is encoded later.
type lazyCore struct {
	zapcore.Core // the logger without the fields
	fields       []zapcore.Field

	once sync.Once
	with zapcore.Core // the logger with the fields; nil until something is logged
}

// maxVerbosity is the zap level of verbosity 4, the highest verbosity that the flag can set. At verbosity 8, client-go
// logs the bodies of requests and responses, including Secrets. At verbosity 5, the queue of controller-runtime v0.24
// logs its items while they change, which is a data race.
const maxVerbosity = zapcore.Level(-4)

// starts are messages of controller-runtime about the start and the end of its own parts. The hub does not log them,
// because they would hide messages about objects and clusters.
var starts = map[string]bool{
	"Starting EventSource": true, "Starting Controller": true, "Starting workers": true, "All workers finished": true,
	"Shutdown signal received, waiting for all workers to finish": true,
	"Starting metrics server":                                     true, "Serving metrics server": true,
	"Registering webhook": true, "Starting webhook server": true, "Serving webhook server": true, "starting server": true,
}

// Enabled implements zapcore.Core.
func (c *lazyCore) Enabled(level zapcore.Level) bool {
	return level >= maxVerbosity && c.Core.Enabled(level)
}

func (c *lazyCore) full() zapcore.Core {
	c.once.Do(func() { c.with = c.Core.With(c.fields) })
	return c.with
}

// With implements zapcore.Core.
func (c *lazyCore) With(fields []zapcore.Field) zapcore.Core {
	return &lazyCore{Core: c.Core, fields: append(slices.Clip(c.fields), fields...)}
}

// Check implements zapcore.Core.
func (c *lazyCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) || e.Level == zapcore.InfoLevel && starts[e.Message] {
		return ce
	}
	return c.full().Check(e, ce)
}

// Write implements zapcore.Core.
func (c *lazyCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	return c.full().Write(e, fields)
}
