package resp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"
)

// socketPair returns a socket as connections use it, and the other end of its connection.
func socketPair(t *testing.T) (*socket, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return &socket{Conn: near, raw: newRawIO(near)}, far.(*net.TCPConn)
}

func TestSocket_WritesAllAlthoughTheOtherEndIsSlow(t *testing.T) {
	s, far := socketPair(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // more than the buffers of both ends take
	written := make(chan error, 1)
	go func() { // ends when all is read
		n, err := s.Write(sent)
		if err == nil && n != len(sent) {
			err = io.ErrShortWrite
		}
		written <- err
	}()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("what was written is not what is read (%v)", err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

// TestSocket_OrdersWhatComesBeforeAndAfter fails only under the race detector.
// Renewals of very many locks are megabytes, which must not stay until the next write.
func TestSocket_KeepsNothingOfWhatItHasWritten(t *testing.T) {
	s, far := socketPair(t)
	go func() { _, _ = io.Copy(io.Discard, far) }() // ends with the connection
	freed := make(chan struct{})
	sent := make([]byte, 1<<20)
	runtime.AddCleanup(&sent[0], func(freed chan struct{}) { close(freed) }, freed)
	if _, err := s.Write(sent); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	select {
	case <-freed:
	case <-time.After(10 * time.Second):
		t.Error("it is still there")
	}
	runtime.KeepAlive(s)
}

func TestSocket_OrdersWhatComesBeforeAndAfter(t *testing.T) {
	s, far := socketPair(t)
	other := &socket{Conn: far, raw: newRawIO(far)}
	guarded, failed := 0, make(chan error, 1)
	go func() { // ends when it has written
		guarded++
		_, err := s.Write([]byte("unlocked"))
		failed <- err
	}()
	if _, err := io.ReadFull(other, make([]byte, len("unlocked"))); err != nil {
		t.Fatal(err)
	}
	guarded++
	if err := <-failed; err != nil || guarded != 2 {
		t.Fatal(guarded, err)
	}
}

func TestSocket_KeepsWhatItsDeadlineCutsOff(t *testing.T) {
	s, far := socketPair(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	if err := s.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Write(sent); n != len(sent) || err != nil || !s.isBehind() {
		t.Fatalf("written %d, %v, behind %v", n, err, s.isBehind())
	}
	if err := s.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	caughtUp := make(chan error, 1)
	go func() { caughtUp <- s.catchUp() }() // ends when all is read
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("what was written is not what is read (%v)", err)
	}
	if err := <-caughtUp; err != nil || s.isBehind() {
		t.Fatalf("caught up: %v, behind %v", err, s.isBehind())
	}
}

func TestSocket_ReadsAndEndsAsAnyConnection(t *testing.T) {
	s, far := socketPair(t)
	b := make([]byte, 16)
	if err := s.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a read whose deadline has come: %v", err)
	}
	if err := s.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := far.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(b); err != nil || string(b[:n]) != "hello" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	if err := far.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(b); err != io.EOF { //nolint:errorlint // as io.Reader wants it
		t.Errorf("at the end: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read of what is closed: %v", err)
	}
	if _, err := s.Write(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write to what is closed: %v", err)
	}
}

func TestSocket_TellsOfAReset(t *testing.T) {
	s, far := socketPair(t)
	if err := far.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 1)); err == nil || err == io.EOF { //nolint:errorlint // see above
		t.Errorf("a read after a reset: %v", err)
	}
}
