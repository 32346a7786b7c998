package notify

import (
	"context"
	"sync"
	"time"
)

// message is a notice that waits for a receiver.
type message struct {
	id   string
	at   time.Time
	what string // subject and reason, for errors
	body []byte
}

// queue has the messages of one sink, oldest first.
type queue struct {
	most int // at least 2

	mu       sync.Mutex
	messages []*message
	sending  bool // the first message is being sent
	filled   chan struct{}
}

func newQueue(most int) *queue { return &queue{most: most, filled: make(chan struct{}, 1)} }

// push adds a message. A full queue loses its oldest message that is not being sent: newer ones say more about now.
func (q *queue) push(m *message) (lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.messages) >= q.most {
		oldest := 0
		if q.sending {
			oldest = 1
		}
		q.messages = append(q.messages[:oldest], q.messages[oldest+1:]...)
		lost = true
	}
	q.messages = append(q.messages, m)
	select {
	case q.filled <- struct{}{}:
	default:
	}
	return lost
}

// first returns the first message, and keeps it until pop. It waits for one, and returns nil after ctx has ended.
func (q *queue) first(ctx context.Context) *message {
	for {
		q.mu.Lock()
		if len(q.messages) > 0 {
			q.sending = true
			m := q.messages[0]
			q.mu.Unlock()
			return m
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-q.filled:
		}
	}
}

// pop removes the message that first returned.
func (q *queue) pop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.messages[0] = nil
	q.messages, q.sending = q.messages[1:], false
}
