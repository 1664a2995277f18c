//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"io"
	"sync"
	"syscall"
)

// recordBuffers spare each acquisition two kilobytes of garbage.
var recordBuffers = sync.Pool{New: func() any { return new([maxRecord]byte) }}

// readRecord reads the record of a slot of fd. That at the beginning, slot 0, is the lock's.
func readRecord(fd, slot int) (r record, err error) {
	err = readInto(fd, slot, func(p []byte) error {
		r, err = decodeRecord(p)
		return err
	})
	return r, err
}

// readLastToken returns the last token that the record at the beginning of fd names.
func readLastToken(fd int) (last uint64, err error) {
	err = readInto(fd, 0, func(p []byte) error {
		if p, err = checkedRecord(p); err == nil {
			last = lastToken(p)
		}
		return err
	})
	return last, err
}

// readInto calls use with what is at a slot's place in fd, which is valid during the call.
func readInto(fd, slot int, use func(p []byte) error) error {
	buf := recordBuffers.Get().(*[maxRecord]byte)
	defer recordBuffers.Put(buf)
	for {
		n, err := syscall.Pread(fd, buf[:], int64(slot)*maxRecord)
		if err == nil {
			return use(buf[:n])
		}
		if err != syscall.EINTR {
			return err
		}
	}
}

// writeRecord writes r to a slot's place in one call, so that a process that dies leaves the old record or the new one.
func writeRecord(fd, slot int, r *record) error {
	buf := recordBuffers.Get().(*[maxRecord]byte)
	defer recordBuffers.Put(buf)
	p := r.appendTo(buf[:0])
	for {
		n, err := syscall.Pwrite(fd, p, int64(slot)*maxRecord)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case n < len(p):
			return io.ErrShortWrite
		default:
			return nil
		}
	}
}
