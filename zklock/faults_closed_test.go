package zklock

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// A session that ends at the servers long before its timeout, as when somebody closes it: the holder is told when it
// has reached a server again, and not when its lease is over; who waited gets in, and the client goes on in the next
// session.
func TestSessionClosedAtTheServers_IsTold_AndClientsGoOn(t *testing.T) {
	t.Parallel()
	n, root := sharedServer(t), freshRoot()
	const lease = 12 * time.Second
	p := servers.NewProxy(t, n.Addr())
	d := open(t, []string{p.Addr()}, &Options{Root: root, Timeout: lease})
	c, err := interlock.New(d, leased(lease))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	l := mustLock(t, c, "lock")
	work := l.Context(t.Context())
	waiter := startLock(t, urlOf(root, n.Addr()), nil, "lock")
	begin := time.Now()
	p.Refuse() // or the client would take its session back
	closeSession(t, n.Addr(), d)
	p.Pass()
	if took := gone(t, l).Sub(begin); took > lease/2 {
		t.Errorf("the holder was told after %v, with a lease of %v", took, lease)
	}
	var lost *interlock.LostError
	if !errors.As(l.Err(), &lost) || lost.Reason != "session" && lost.Reason != "broken" {
		t.Errorf("the lease says %v, want that its session, or its node, is gone", l.Err())
	}
	receive(t, "the work's context to end", work.Done())
	next := waiter.granted("who waited, when the session is gone")
	if next.l.Token() <= l.Token() {
		t.Errorf("token %d after %d", next.l.Token(), l.Token())
	}
	if err := l.Unlock(bounded(t)); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("Unlock of the lost hold says %v", err)
	}
	mustUnlock(t, next.l)
	mustUnlock(t, mustLock(t, c, "lock")) // in the next session
}

// closeSession closes the session of d, over another connection: whoever shows its number and password may. The server
// hangs up on the connection that d has.
func closeSession(t *testing.T, addr string, d *Driver) {
	t.Helper()
	d.mu.Lock()
	id := d.session.id
	password := reflect.ValueOf(d.session.conn).Elem().FieldByName("passwd").Bytes()
	d.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(bounded(t), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	send := func(fields ...any) {
		t.Helper()
		var text []byte
		for _, f := range fields {
			if text, err = binary.Append(text, binary.BigEndian, f); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)); err != nil {
			t.Fatal(err)
		}
	}
	// The version, the last transaction seen, the timeout in ms, the number, and the password with its length.
	send(int32(0), int64(0), int32(12_000), id, int32(len(password)), password)
	var hello struct {
		Size, Version, Timeout int32
		ID                     int64
	}
	if err := binary.Read(conn, binary.BigEndian, &hello); err != nil || hello.ID != id {
		t.Fatalf("the server knows the session %#x as %+v, %v", id, hello, err)
	}
	send(int32(1), int32(-11))                           // the request number 1, closeSession
	if _, err := io.Copy(io.Discard, conn); err != nil { // until the server hangs up
		t.Fatal(err)
	}
}
