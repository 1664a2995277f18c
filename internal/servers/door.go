package servers

import (
	"context"
	"net"
)

// listener is where connections arrive.
type listener struct {
	net.Listener
	done chan struct{} // closed when nobody accepts from it any more
}

// listen accepts connections, if it is not done already.
func (p *Proxy) listen() error {
	p.door.Lock()
	defer p.door.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil || p.ended {
		return nil
	}
	var socket net.Listener
	var err error
	p.at.inside().within(func() { socket, err = new(net.ListenConfig).Listen(context.Background(), "tcp", p.addr) })
	if err != nil {
		return err
	}
	p.listener = &listener{socket, make(chan struct{})}
	go p.accept(p.listener) // ends when the listener is closed, which waits for it
	return nil
}

func (p *Proxy) accept(l *listener) {
	defer close(l.done)
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		p.join(l, conn.(*net.TCPConn))
	}
}

// join makes a connection that from has accepted one of the proxy's.
func (p *Proxy) join(from *listener, client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cut := context.WithCancel(context.Background())
	l := &link{proxy: p, cut: cut, conns: []*net.TCPConn{client}, tap: p.tap}
	if p.listener != from || p.most > 0 && len(p.links) >= p.most { // closed since it accepted, or one too many
		l.reset()
		return
	}
	l.number = p.accepted.Add(1)
	p.links[l] = true
	p.all.Add(1)
	go l.run(ctx) // ends when both ends of the connection have, or at a reset
}

// leave forgets a connection that has ended.
func (p *Proxy) leave(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// close ends the proxy, and returns when nothing of it is left.
func (p *Proxy) close() {
	p.mu.Lock()
	p.ended = true // so that no late Pass accepts connections again
	p.mu.Unlock()
	p.Refuse()
	p.Reset()
	p.all.Wait()
}
