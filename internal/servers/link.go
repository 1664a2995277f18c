package servers

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// chunkSize is how much is read at once, and chunksHeld how many chunks a direction holds before it stops reading,
	// as a network's buffers do.
	chunkSize, chunksHeld = 32 << 10, 1024

	// chunkTime bounds one try to write to a peer that does not read.
	chunkTime = 10 * time.Millisecond
)

// link is one connection through a Proxy.
type link struct {
	proxy  *Proxy
	number int64              // counted from 1
	tap    Tap                // nil if nobody listens
	cut    context.CancelFunc // ends what works for the connection

	// bytes of the server since the proxy was told to count them; of who forwards these, or of who has the proxy's mu
	said int

	mu    sync.Mutex     // guards conns
	conns []*net.TCPConn // the client's, and the server's once there is one
}

// chunk is what was read at once.
type chunk struct {
	at    time.Time
	bytes []byte
	err   error // that ended the direction, after the bytes; io.EOF is its usual end
}

// run connects to the server and forwards until both directions have ended.
func (l *link) run(ctx context.Context) {
	defer l.proxy.all.Done()
	defer l.proxy.leave(l)
	defer l.close()
	server := l.dial(ctx)
	if server == nil {
		l.reset()
		return
	}
	client := l.conns[0]
	var both sync.WaitGroup
	both.Go(func() { l.forward(ctx, 0, client, server) })
	both.Go(func() { l.forward(ctx, 1, server, client) })
	both.Wait()
}

// dial connects to the server as soon as something may pass to it, and returns nil if that is not possible.
func (l *link) dial(ctx context.Context) *net.TCPConn {
	for {
		r, changed := l.rule(0)
		if !r.hold {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
	conn, err := l.proxy.at.dial(ctx, l.proxy.target)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conn.(*net.TCPConn))
	if ctx.Err() != nil { // the reset has passed already, and did not find it
		cutOff(l.conns[1])
	}
	return l.conns[1]
}

// forward forwards one direction until it ends.
func (l *link) forward(ctx context.Context, way int, from, to *net.TCPConn) {
	chunks := make(chan chunk, chunksHeld)
	done := make(chan struct{}) // closed when nothing is forwarded any more
	var reader sync.WaitGroup
	reader.Go(func() { // ends with from, or with done
		for {
			b := make([]byte, chunkSize)
			n, err := from.Read(b)
			if l.tap != nil && n > 0 {
				l.tap(l.number, ways[way], b[:n:n])
			}
			select {
			case chunks <- chunk{time.Now(), b[:n:n], err}:
			case <-done:
				return
			}
			if err != nil {
				return
			}
		}
	})
	if l.pump(ctx, way, chunks, to) != nil {
		_ = from.CloseRead() // ends the reader: nobody takes what it reads
	}
	close(done)
	reader.Wait()
}

// pump writes the chunks until the direction has ended, or returns why it cannot.
func (l *link) pump(ctx context.Context, way int, chunks <-chan chunk, to *net.TCPConn) error {
	mute := false // bytes were lost, so that no more may follow
	for {
		var c chunk
		select {
		case c = <-chunks:
		case <-ctx.Done():
			return ctx.Err()
		}
		lost, err := l.pass(ctx, way, c, to, mute)
		if err != nil {
			return err
		}
		mute = mute || lost
		if c.err == nil {
			continue
		}
		if !mute {
			l.endAs(c.err, to)
		}
		return nil
	}
}

// endAs tells one end that the other has ended.
func (l *link) endAs(err error, to *net.TCPConn) {
	if errors.Is(err, io.EOF) {
		_ = to.CloseWrite() // an error says that it has ended as well
		return
	}
	l.reset()
}

// pass forwards c when the rules let it, and reports whether it lost it instead.
func (l *link) pass(ctx context.Context, way int, c chunk, to *net.TCPConn, mute bool) (lost bool, err error) {
	for {
		done, r, changed, err := l.try(way, &c, to, mute)
		if done || err != nil {
			return r.drop, err
		}
		if err := l.await(ctx, r, changed, c.at); err != nil {
			return false, err
		}
	}
}

// await returns when it may be time for a chunk that was read at the given time.
func (l *link) await(ctx context.Context, r rule, changed <-chan struct{}, at time.Time) error {
	var due <-chan time.Time
	if !r.hold {
		timer := time.NewTimer(max(time.Until(at.Add(r.delay)), r.slice))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-changed: // it may pass, or must wait longer
	case <-due: // its delay is over, or its peer did not take all of it
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// try writes what it can of c if the rules allow it now, and says whether c is done with.
func (l *link) try(way int, c *chunk, to *net.TCPConn, mute bool) (bool, rule, <-chan struct{}, error) {
	p := l.proxy
	p.mu.RLock()
	defer p.mu.RUnlock()
	r := p.rules[way]
	switch {
	case r.drop || mute:
		return true, r, p.changed, nil
	case r.hold || time.Until(c.at.Add(r.delay)) > 0:
		return false, r, p.changed, nil
	case len(c.bytes) == 0:
		return true, r, p.changed, nil
	}
	if err := to.SetWriteDeadline(time.Now().Add(chunkTime)); err != nil {
		return false, r, nil, err
	}
	n, err := to.Write(l.allowed(c.bytes, r))
	p.passed[way].Add(int64(n))
	p.writes[way].Add(1)
	c.bytes = c.bytes[n:]
	if r.most > 0 {
		if l.said += n; l.said >= r.most {
			l.reset()
			return false, r, nil, errCutOff
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil // a change may come in between
	}
	return len(c.bytes) == 0, r, p.changed, err
}

// errCutOff says that a connection has carried what it may.
var errCutOff = errors.New("cut off by the proxy")

// allowed is what may be written at once.
func (l *link) allowed(b []byte, r rule) []byte {
	if r.slice > 0 {
		b = b[:1]
	}
	if r.most > 0 {
		b = b[:min(len(b), max(r.most-l.said, 1))]
	}
	return b
}

func (l *link) rule(way int) (rule, <-chan struct{}) {
	l.proxy.mu.RLock()
	defer l.proxy.mu.RUnlock()
	return l.proxy.rules[way], l.proxy.changed
}

// reset cuts the connection at both ends.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut() // under the mutex: what ends by it must not close the connections in the usual way first
	for _, conn := range l.conns {
		cutOff(conn)
	}
}

// close ends what is left of the connection.
func (l *link) close() {
	l.cut()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		_ = conn.Close() // it has ended already, one way or the other
	}
}

// cutOff closes conn with a reset.
func cutOff(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only if it is closed already
	_ = conn.Close()
}
