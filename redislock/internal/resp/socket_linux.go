// System calls of which Go's scheduler is not told (docs/rationale.md, Our own connection). socket.go uses them on
// Linux; syscall_linux.go makes the calls.

package resp

import (
	"io"
	"os"
	"syscall"
)

// rawIO reads and writes a connection without telling Go's scheduler. The scheduler prepares for each system call to
// last: if the process was idle, it wakes a thread to watch over the call, and a goroutine that waits for an answer or
// a push is idle before each. These calls never last, because the connection does not block. To wait, and to end a
// wait, is left to Go.
type rawIO struct {
	conn syscall.RawConn

	// The state of the one read and the one write that may be under way. The functions are kept, since each call would
	// allocate them otherwise.
	in, out          rawPiece
	reading, writing func(fd uintptr) bool
}

// rawPiece is what to read or write, and the outcome so far.
type rawPiece struct {
	name string
	call func(fd uintptr, b []byte) (int, error) // readNow or writeNow
	b    []byte                                  // what is left
	n    int                                     // how many bytes are done
	err  error
}

// newRawIO returns nil if conn cannot be used in this way, as no *net.TCPConn and the like.
func newRawIO(conn any) *rawIO {
	c, is := conn.(syscall.Conn)
	if !is {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	r := &rawIO{conn: raw}
	r.reading = func(fd uintptr) bool { return r.in.do(fd) }
	r.writing = func(fd uintptr) bool {
		for r.out.do(fd) {
			if r.out.err != nil || len(r.out.b) == 0 {
				return true
			}
		}
		// The system is asked until it says that it can take no more: only then does it report when it can
		// (edge-triggered).
		return false
	}
	return r
}

// do makes the call. It reports false if the call would block, and RawConn then waits.
func (p *rawPiece) do(fd uintptr) bool {
	for {
		n, err := p.call(fd, p.b)
		switch err {
		// Less than the whole piece may have been written or read. The caller goes on with the rest.
		case nil:
			p.n += n
			p.b = p.b[n:]
			return true
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			p.err = os.NewSyscallError(p.name, err)
			return true
		}
	}
}

// read is as that of a net.Conn: no bytes and no error mean the end.
func (r *rawIO) read(b []byte) (int, error) {
	r.in = rawPiece{name: "read", call: readNow, b: b}
	err := r.conn.Read(r.reading)
	switch {
	case err != nil:
		return r.in.n, err
	case r.in.err == nil && r.in.n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return r.in.n, r.in.err
}

// write is as that of a net.Conn.
func (r *rawIO) write(b []byte) (int, error) {
	r.out = rawPiece{name: "write", call: writeNow, b: b}
	err := r.conn.Write(r.writing)
	if err == nil {
		err = r.out.err
	}
	r.out.b = nil // it may be megabytes
	return r.out.n, err
}
