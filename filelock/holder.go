//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Who holds a lock. Its record tells that if a holder of this package has marked the file. Else the list of all flocks
// of the machine does (flockers_linux.go), which is slow and therefore cached.

// holderReads is how often a record is read that may be just being written.
const holderReads = 3

// refuse returns the error of a Try, with the holder as far as finding it is worth its price. A lock that was handed
// over a moment ago has no holder that is worth a search.
func (d *Driver) refuse(r *driver.Request, f *lockFile, justPassed bool) *driver.HeldError {
	switch {
	case r.SkipHolder: // the wait that follows tells
		return &driver.HeldError{Kind: r.Kind, Name: r.Name}
	case justPassed:
		e, _ := ourHolder(f, r.Key)
		return e
	}
	return d.heldError(f, r.Key)
}

// heldError returns what is known of the lock's holder. The lock was found taken before. If the holder has changed by
// the time the record is read, the new one is told.
func (d *Driver) heldError(f *lockFile, key driver.Key) *driver.HeldError {
	e, ours := ourHolder(f, key)
	if ours {
		return e
	}
	foreign := d.foreign.client(f.id)
	if e, ours = ourHolder(f, key); !ours { // nobody has come meanwhile
		e.Client = foreign
	}
	return e
}

// ourHolder is heldError as far as the lock file tells. ours is false if no holder of this package has marked the file,
// so that the holder is not known. Where there are no marks it is always true.
func ourHolder(f *lockFile, key driver.Key) (e *driver.HeldError, ours bool) {
	e = &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if !isHeld(f.fd) {
		return e, false
	}
	if several(key.Kind) {
		for _, h := range holders(f.fd) { // the first of them
			e.Owner, e.Client, e.Token, e.Since = h.Owner, h.Client, h.Token, h.Since
			break
		}
		return e, true
	}
	if r, err := stableRecord(f.fd, 0); err == nil {
		e.Owner, e.Client, e.Token, e.Since = r.Owner, r.Client, r.First, r.Since
	}
	return e, true
}

// foreignFor is how long a list of all flocks counts. While it is read, Linux halts everybody on the machine who
// takes or releases a file lock, for some milliseconds, and its readers wait for each other. Under load calls took up
// to a second when each call read it that found a lock between two holders.
const foreignFor = time.Second

// foreigners caches the list of all flocks, in which holders are found that have not marked their file.
type foreigners struct {
	list    func() flockers         // reads the list; flockHolders but in tests
	reading sync.Mutex              // held while the list is read: one goroutine at a time
	last    atomic.Pointer[listing] // the latest list; nil before the first
}

type listing struct {
	all flockers
	at  time.Time // when all had been read
}

// client returns the name for whoever holds the file's flock. It is "" if nobody was found, or if another goroutine is
// just reading the list: nobody waits for that.
func (k *foreigners) client(id fileID) string {
	l := k.last.Load()
	if l == nil || time.Since(l.at) >= foreignFor {
		if !k.reading.TryLock() {
			return ""
		}
		defer k.reading.Unlock()
		l = &listing{all: k.list()}
		l.at = time.Now()
		k.last.Store(l)
	}
	if pid := l.all.of(id); pid != 0 {
		return foreignClient(pid)
	}
	return ""
}

// foreignClient names a holder that is not of this package, such as flock(1).
func foreignClient(pid int) string { return fmt.Sprintf("process %d", pid) }

// stableRecord reads a record that its holder may be writing at this moment: reads are not atomic with writes, and the
// checksum tells.
func stableRecord(fd descriptor, slot int) (r record, err error) {
	for range holderReads {
		if r, err = readRecord(fd, slot); !errors.Is(err, errBadRecord) {
			return r, err
		}
	}
	return r, err
}
