package pglock

import (
	"bytes"
	"errors"
	"net"
)

// gate is the socket of a session, above TLS. It can wait for an answer to come without anything being lost when the wait ends early:
// the client library, which closes a connection whose read is broken off, reads what has come by then from here.
type gate struct {
	net.Conn

	got  []byte // received, and not read by the client library yet: a part of room
	err  error  // why nothing more comes
	room [1 << 11]byte
}

// ready is how an answer ends outside of a transaction: the message ReadyForQuery.
var ready = []byte{'Z', 0, 0, 0, 5, 'I'}

// Read reads what has come.
func (g *gate) Read(p []byte) (int, error) {
	switch {
	case len(g.got) > 0:
		n := copy(p, g.got)
		g.got = g.got[n:]
		return n, nil
	case g.err != nil:
		return 0, g.err
	}
	return g.Conn.Read(p)
}

// await waits until so many answers have come, or the connection has ended, and reports true. It reports false at the deadline of the
// socket, or if there is no room for so much. Nobody else may read meanwhile.
func (g *gate) await(answers int) bool {
	g.got = g.room[:copy(g.room[:], g.got)]
	for bytes.Count(g.got, ready) < answers {
		if g.err != nil {
			return true
		}
		n, err := g.Conn.Read(g.room[len(g.got):])
		g.got = g.room[:len(g.got)+n]
		if isTimeout(err) || len(g.got) == len(g.room) {
			return false
		}
		g.err = err
	}
	return true
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
