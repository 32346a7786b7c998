package faultproxy

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
)

// listener tracks its open connections, so that a fault can reset them.
type listener struct {
	*net.TCPListener
	proxy *Proxy

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// Accept returns the next connection. While the fault resets all connections, it resets new connections, too.
func (l *listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(context.Background())
		c := &conn{TCPConn: tcp, listener: l, open: ctx, cancel: cancel}
		l.mu.Lock()
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		if fault := l.proxy.Fault(); fault == (Fault{Mode: Reset}) {
			c.reset()
			continue
		}
		return c, nil
	}
}

func (l *listener) resetAll() {
	l.mu.Lock()
	conns := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		c.reset()
	}
}

// conn is a client's connection. During a blackhole, no data passes in either direction, but no data is lost: as after
// dropped packets, TCP delivers the data when the fault is over.
type conn struct {
	*net.TCPConn
	listener *listener
	open     context.Context // ends when the connection is closed
	cancel   context.CancelFunc
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err // net/http sets a deadline to interrupt its own read
	}
	if held := c.listener.proxy.awaitEnd(c.open, Blackhole); held != nil {
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if c.listener.proxy.awaitEnd(c.open, Blackhole) != nil {
		return 0, net.ErrClosed
	}
	return c.TCPConn.Write(p)
}

// Close closes the connection. During a blackhole, the other side notices this only after the fault.
func (c *conn) Close() error {
	c.cancel()
	c.listener.mu.Lock()
	delete(c.listener.conns, c)
	c.listener.mu.Unlock()
	if c.listener.proxy.Fault().Mode == Blackhole {
		go func() {
			_ = c.listener.proxy.awaitEnd(context.Background(), Blackhole)
			_ = c.TCPConn.Close()
		}()
		return nil
	}
	return c.TCPConn.Close()
}

// reset closes the connection with RST instead of FIN.
func (c *conn) reset() {
	_ = c.SetLinger(0) // fails on a closed connection, which needs no reset
	_ = c.Close()
}
