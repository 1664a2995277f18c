package servers

// Tap hears what goes through a [Proxy]: on which connection, counted from 1, in which direction, and the bytes. It
// hears them before they are forwarded, so a request before its reply, and also those that a rule holds or loses. It is
// called by two goroutines for each connection, and must not change or keep the bytes.
type Tap func(connection int64, d Direction, b []byte)

// Tap has f hear what passes on the connections that are made from now on; nil ends that.
func (p *Proxy) Tap(f Tap) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tap = f
}
