package kindwatch

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// errRestart is the cause with which Restart ends an attempt.
var errRestart = errors.New("restart asked for")

// orders are the calls of Restart, Retry, Find and Relist that the goroutine of a kind has not handled yet.
type orders struct {
	reread chan *unstructured.Unstructured // objects that were read once more

	mu        sync.Mutex
	interrupt context.CancelCauseFunc // ends the attempt under way
	// relists is the number of Relist calls. listedFor is the number of Relist calls before the last list began.
	relists, listedFor int
	// toFind is true from a Find until the kind is resolved again. moved is true from then until the kind is listed.
	toFind, moved bool
}

// begin returns the context of an attempt. A call of restart ends it.
func (o *orders) begin(parent context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, interrupt := context.WithCancelCause(parent)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.interrupt = interrupt
	return ctx, interrupt
}

func (o *orders) restart() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.interrupt != nil {
		o.interrupt(errRestart)
	}
}

// relist ends the current attempt. The next one lists the objects, without a pause.
func (o *orders) relist() {
	o.mu.Lock()
	o.relists++
	o.mu.Unlock()
	o.restart()
}

// find ends the current attempt. The next one resolves the kind and lists the objects, without a pause.
func (o *orders) find() {
	o.mu.Lock()
	o.toFind = true
	o.mu.Unlock()
	o.relist()
}

func (o *orders) isToFind() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.toFind
}

// found records that the kind was resolved.
func (o *orders) found() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.toFind, o.moved = false, o.moved || o.toFind
}

func (o *orders) toRelist() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.relists != o.listedFor
}

// asked returns the number of Relist calls so far.
func (o *orders) asked() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.relists
}

// listed records a list that began after this number of Relist calls. anew is true if a Relist was called after the
// previous list began.
func (o *orders) listed(relists int) (anew bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	anew = o.listedFor != relists
	o.listedFor = relists
	return anew
}

// delivered records that the handler was called for all objects of the list. moved is true for the first list after a
// Find.
func (o *orders) delivered() (moved bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	moved, o.moved = o.moved, false
	return moved
}
