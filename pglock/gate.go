// What stands between the socket and the client library, so that a goroutine can wait for an answer and stop waiting
// without breaking the connection. question.go uses it; dial.go puts it in when it opens a session.

package pglock

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// gate is what the client library reads a session's messages from.
//
// It exists because the library closes a connection whose read was broken off by a deadline. A gate reads into room of
// its own: when the wait ends early, what has come by then stays there, and the library reads it later from the
// beginning.
//
// It has no mutex. Only the goroutine that has the connection touches it.
type gate struct {
	from io.Reader
	got  []byte        // received and not yet read by the library: a part of room
	err  error         // why nothing more comes
	room [1 << 11]byte // 2 KiB; an answer that does not fit is read in the connection's goroutine
}

// Read gives the library first what await has received, then what the socket has.
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
// deadline of the socket, or if there is no room for more. What was answered before must have been read by the library,
// because the count begins at the boundary of a message; and nobody else may read meanwhile.
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

// complete counts the answers in got. An answer is some messages, the last of which is ReadyForQuery. A message is a
// letter, four bytes with its length without the letter, and its content.
func complete(got []byte) (answers int) {
	for len(got) > 4 {
		size := uint64(binary.BigEndian.Uint32(got[1:])) + 1
		if size > uint64(len(got)) {
			break
		}
		if got[0] == 'Z' {
			answers++
		}
		got = got[max(size, 5):] // at least the head, so that a length of zero cannot make this loop endless
	}
	return answers
}
