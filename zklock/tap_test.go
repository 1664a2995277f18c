package zklock

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// tapped is a connection that the library would have, with the server's end of it, in virtual time.
type tapped struct {
	*tap
	t      *testing.T
	server net.Conn
}

// newTapped connects, after the connection before if that is not nil, in a session that has set a watch or has not, and
// whose last transaction that is. It returns after the greeting.
func newTapped(t *testing.T, watching bool, last uint64, before *tap) *tapped {
	t.Helper()
	client, server := net.Pipe()
	l := newLine(t.Context(), []string{"server"}, &Options{Timeout: time.Minute})
	l.watching.Store(watching)
	x := &tapped{tap: newTap(client, l, time.Now(), before), t: t, server: server}
	t.Cleanup(func() {
		l.hangUp()
		_ = client.Close()
		_ = server.Close()
	})
	go func() { _, _ = io.Copy(io.Discard, server) }() // ends with the connection
	hello := binary.BigEndian.AppendUint32(nil, 28)
	hello = binary.BigEndian.AppendUint32(hello, 0) // the protocol's version
	hello = binary.BigEndian.AppendUint64(hello, last)
	x.write(append(hello, make([]byte, 16)...))
	x.says(append(binary.BigEndian.AppendUint32(nil, 16), make([]byte, 16)...))
	x.reads()
	return x
}

// write has the library send a packet.
func (x *tapped) write(packet []byte) {
	x.t.Helper()
	if _, err := x.Write(packet); err != nil {
		x.t.Fatal(err)
	}
}

// asks has the library send a request with that number.
func (x *tapped) asks(op uint32) {
	x.t.Helper()
	packet := append(binary.BigEndian.AppendUint32(nil, 8), 0, 0, 0, 1)
	x.write(binary.BigEndian.AppendUint32(packet, op))
}

// rewatch has the library set its watches from that transaction.
func (x *tapped) rewatch(from uint64) {
	x.t.Helper()
	packet := append(binary.BigEndian.AppendUint32(nil, 28), 0, 0, 0, 1)
	packet = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(packet, setWatches), from)
	x.write(append(packet, make([]byte, 12)...))
}

// says has the server say something, when it is read.
func (x *tapped) says(packet []byte) {
	go func() { _, _ = x.server.Write(packet) }() // ends when it was read, or with the connection
}

// reads has the library read, and returns how long it waits for what the server has said.
func (x *tapped) reads() time.Duration {
	x.t.Helper()
	begin := time.Now()
	if _, err := x.Read(make([]byte, 64)); err != nil {
		x.t.Fatal(err)
	}
	return time.Since(begin)
}

// answered has the server say something, and returns how long the library waits for it.
func (x *tapped) answered() time.Duration {
	x.t.Helper()
	x.says([]byte("an answer"))
	return x.reads()
}

// The library may be about to read what an answer writes, until it sets its watches again.
func TestTap_KeepsTheFirstAnswerUntilTheLibrarysWatchesAreSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTapped(t, true, 7, nil)
		x.asks(opSetData)
		const late = mostSettle / 2
		set := time.AfterFunc(late, func() { x.rewatch(7) })
		defer set.Stop()
		if took := x.answered(); took != late {
			t.Errorf("the answer came after %v, the watches after %v", took, late)
		}
		if took := x.answered(); took != 0 {
			t.Errorf("the next answer came after %v", took)
		}
	})
}

// A session all of whose watches have fired sets none, which nobody can know.
func TestTap_WithoutTheLibrarysWatches_WaitsOnceForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTapped(t, true, 7, nil)
		x.asks(opCreate)
		if took := x.answered(); took != mostSettle {
			t.Errorf("the answer came after %v, want %v", took, mostSettle)
		}
		x.asks(opCreate)
		if took := x.answered(); took != 0 {
			t.Errorf("the next answer came after %v", took)
		}
	})
}

// What names no transaction need not wait. The library sends nothing else before the user was shown again.
func TestTap_KeepsNothingThatWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTapped(t, true, 7, nil)
		for _, op := range []uint32{setAuth, ping} {
			x.asks(op)
			if took := x.answered(); took != 0 {
				t.Errorf("the answer to %d came after %v", op, took)
			}
		}
		x.asks(opSetData)
		if took := x.answered(); took != mostSettle {
			t.Errorf("the answer after those came after %v, want %v", took, mostSettle)
		}
		x = newTapped(t, false, 7, nil)
		x.asks(opSetData)
		if took := x.answered(); took != 0 {
			t.Errorf("the answer in a session without watches came after %v", took)
		}
	})
}

// counts fails unless the watches of x count as set, or do not.
func (x *tapped) counts(want bool, when string) {
	x.t.Helper()
	got := false
	select {
	case <-x.rewatched:
		got = true
	default:
	}
	if got != want {
		x.t.Errorf("%s: the library's watches count as set: %v, want %v", when, got, want)
	}
}

// The packet that asks for the connection has the epoch of the ensemble where others have the request's number.
func TestTap_AnEpochIsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const last = setWatches << 32
		x := newTapped(t, true, last, nil)
		x.counts(false, "after the packet that asks for the connection")
		x.asks(opSetData)
		if took := x.answered(); took != mostSettle {
			t.Errorf("the answer came after %v, want %v", took, mostSettle)
		}
		x.rewatch(last)
		x.counts(true, "after its watches")
	})
}

// The library may send a setWatches of an earlier connection over the next, before the one of that.
func TestTap_WatchesOfAnEarlierConnection_AreNotItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTapped(t, true, 7, nil) // its watches are left over
		x = newTapped(t, true, 9, x.tap)
		x.rewatch(7)
		x.counts(false, "after those of an earlier connection")
		set := time.AfterFunc(mostSettle/2, func() { x.rewatch(9) })
		defer set.Stop()
		if took := x.answered(); took != mostSettle/2 { // their answer is one too
			t.Errorf("the answer to those came after %v", took)
		}
		x.counts(true, "after its own")
		for range 3 { // two of them end before their watches are sent, and without an answer
			x = newTapped(t, true, 9, x.tap)
		}
		for range 2 {
			x.rewatch(9)
			x.counts(false, "after one that may be left over")
		}
		x.rewatch(9)
		x.counts(true, "after the third")
		x = newTapped(t, true, 9, x.tap)
		x.rewatch(9)
		x.counts(true, "when nothing can be left over")
	})
}
