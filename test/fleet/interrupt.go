package fleet

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// UntilInterrupted returns a context that ends at an interrupt. At an interrupt, the labs in these folders and this
// process end, also while tests run. A caller calls end before it ends its labs itself. After an interrupt, end never
// returns.
func UntilInterrupted(config Config, dirs ...string) (ctx context.Context, end func()) {
	// Signals are caught until this process ends, so that none ends it before its labs.
	ctx, _ = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	finish := context.AfterFunc(ctx, func() { abort(config, dirs) })
	return ctx, func() {
		if !finish() {
			select {} // abort ends this process
		}
	}
}

// abort ends the labs in these folders and this process. The kernel kills the hub processes when this process ends.
func abort(config Config, dirs []string) {
	signal.Ignore(syscall.SIGPIPE) // a write to standard output may fail, because its reader may have ended
	_, _ = fmt.Fprintln(config.Log, "interrupted: taking the fleet down")
	for _, config.Dir = range dirs {
		lab := Fleet{Config: config}
		if err := lab.Down(context.Background()); err != nil {
			_, _ = fmt.Fprintln(config.Log, err)
		}
		_ = os.RemoveAll(config.Dir)
	}
	os.Exit(1)
}
