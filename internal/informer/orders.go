package informer

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// errRestart is the cause with which Restart ends an attempt.
var errRestart = errors.New("restart asked for")

// orders has the calls of Restart, Retry, Find and Relist of a Set that the goroutine of a kind has not handled yet.
type orders struct {
	reread chan *unstructured.Unstructured // objects that were read again

	mu        sync.Mutex
	interrupt context.CancelCauseFunc // ends the current attempt
	// relists is the number of Relist calls so far. listedFor is the number of these calls before the last complete list
	// began. If the numbers differ, the objects must be listed again.
	relists, listedFor int
	// toFind is true from a call of Find until the API resource of the kind is found again. moved is true from that time
	// until the new list is stored.
	toFind, moved bool
}

// begin returns the context of an attempt. The method restart ends this context.
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

// relist ends the current attempt. The next attempt begins at once and lists the objects.
func (o *orders) relist() {
	o.mu.Lock()
	o.relists++
	o.mu.Unlock()
	o.restart()
}

// find ends the current attempt. The next attempt begins at once, finds the API resource of the kind, and lists the
// objects.
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

// found records that the API resource of the kind was found.
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

// isRelisted reports whether Relist was called between the last complete list and the list that begins now. relists is
// the number of Relist calls before the list that begins now.
func (o *orders) isRelisted(relists int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listedFor != relists
}

// listed records that a complete list is stored. relists is the number of Relist calls before this list began. relisted
// is true if Relist was called between the previous list and this list.
func (o *orders) listed(relists int) (relisted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	relisted = o.listedFor != relists
	o.listedFor = relists
	return relisted
}

// delivered records that the handler was called for all objects of a list. moved is true if the list is the first one
// after a Find.
func (o *orders) delivered() (moved bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	moved, o.moved = o.moved, false
	return moved
}
