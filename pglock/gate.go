package pglock

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// gate is what the client library reads a session's messages from. It can wait for an answer to come without anything
// being lost when the wait ends early: the library, which closes a connection whose read is broken off, reads what has
// come by then from here.
type gate struct {
	from io.Reader
	got  []byte // received, and not read by the library yet: a part of room
	err  error  // why nothing more comes
	room [1 << 11]byte
}

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
	return g.from.Read(p)
}

// await waits until so many answers have come, or the connection has ended, and reports true. It reports false at the
// deadline of the socket, or if there is no room for so much. What was answered before must have been read, and nobody
// else may read meanwhile.
func (g *gate) await(answers int) bool {
	g.got = g.room[:copy(g.room[:], g.got)]
	for g.err == nil && complete(g.got) < answers {
		n, err := g.from.Read(g.room[len(g.got):])
		g.got = g.room[:len(g.got)+n]
		if errors.Is(err, os.ErrDeadlineExceeded) || len(g.got) == len(g.room) {
			return false
		}
		g.err = err
	}
	return true
}

// complete counts the answers in what has come. Each is some messages, of which the last is ReadyForQuery; and each of
// those has a letter, its length without that, and what it says.
func complete(got []byte) (answers int) {
	for len(got) > 4 {
		size := uint64(binary.BigEndian.Uint32(got[1:])) + 1
		if size > uint64(len(got)) {
			break
		}
		if got[0] == 'Z' {
			answers++
		}
		got = got[max(size, 5):]
	}
	return answers
}
