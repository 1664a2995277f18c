//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"io"
	"sync"
)

// Reading and writing records (record.go) at their places in a lock file.

// recordBuffers saves each acquisition two kilobytes of garbage.
var recordBuffers = sync.Pool{New: func() any { return new([maxRecord]byte) }}

// readRecord reads the record of a slot of fd. Slot 0, at the beginning, is the lock's own.
func readRecord(fd descriptor, slot int) (r record, err error) {
	err = readInto(fd, slot, func(p []byte) error {
		r, err = decodeRecord(p)
		return err
	})
	return r, err
}

// readLastToken returns the last token that the record at the beginning of fd names.
func readLastToken(fd descriptor) (last uint64, err error) {
	err = readInto(fd, 0, func(p []byte) error {
		if p, err = checkedRecord(p); err == nil {
			last = lastToken(p)
		}
		return err
	})
	return last, err
}

// readInto calls use with what is at a slot's place in fd. The bytes are valid during the call only.
func readInto(fd descriptor, slot int, use func(p []byte) error) error {
	buf := recordBuffers.Get().(*[maxRecord]byte)
	defer recordBuffers.Put(buf)
	n, err := pread(fd, buf[:], int64(slot)*maxRecord)
	if err != nil {
		return err
	}
	return use(buf[:n])
}

// writeRecord writes r to a slot's place in one call, so that a process that dies leaves the old record or the new one.
func writeRecord(fd descriptor, slot int, r *record) error {
	buf := recordBuffers.Get().(*[maxRecord]byte)
	defer recordBuffers.Put(buf)
	p := r.appendTo(buf[:0])
	n, err := pwrite(fd, p, int64(slot)*maxRecord)
	if err == nil && n < len(p) {
		return io.ErrShortWrite
	}
	return err
}
