package templates

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// slowReader answers each read after a second.
type slowReader struct {
	client.Reader
	reads atomic.Int32
}

func (r *slowReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	r.reads.Add(1)
	<-time.After(time.Second)
	return nil
}

// TestCallsForADefinitionShareOnlyReadsThatBeginLater calls get ten times during a read. The ten calls must share the
// next read, and must not return before its end.
func TestCallsForADefinitionShareOnlyReadsThatBeginLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader := &slowReader{}
		d := newDefinitions(reader)
		var calls sync.WaitGroup
		get := func(want time.Duration) {
			calls.Go(func() {
				began := time.Now()
				if _, err := d.get(t.Context(), "widgets.example.com"); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != want {
					t.Errorf("a call took %s, want %s", took, want)
				}
			})
		}
		get(time.Second)
		<-time.After(time.Second / 4)
		for range 10 {
			get(time.Second + 3*time.Second/4) // the rest of the present read, and the next read
		}
		calls.Wait()
		if n := reader.reads.Load(); n != 2 {
			t.Errorf("%d reads for 11 calls, want 2", n)
		}
	})
}
