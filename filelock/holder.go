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

// holderReads is how often a record is read that is just being written.
const holderReads = 3

// refuse says who is in the way of a Try, as far as that is worth its price. A lock that was handed over a moment ago
// has no holder that is worth a search.
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

// heldError tells what is known of the lock's holder. It is called when the lock was found taken; by the time it reads
// the record, the holder may have changed, and then that one is told.
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
// so that it is not known who holds it; where there are no marks it is always true.
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

// foreignFor is for how long a list of all flocks counts. To read it, Linux halts whoever takes or gives back a file
// lock anywhere on the machine, for some milliseconds, and those who read it wait for each other. Under load calls took
// up to a second when each of them read it that found a lock between two holders.
const foreignFor = time.Second

// foreigners keeps the list of all flocks for that long, in which holders are found that have not marked their file.
type foreigners struct {
	list    func() flockers // reads it; flockHolders but in tests
	reading sync.Mutex
	last    atomic.Pointer[listing]
}

type listing struct {
	all flockers
	at  time.Time // when all had been read
}

// client stands for who holds the file's flock. It is "" if nobody was found, or another goroutine is just reading the
// list.
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

// foreignClient stands for a holder that is not of this package, such as flock(1).
func foreignClient(pid int) string { return fmt.Sprintf("process %d", pid) }

// stableRecord reads a record that its holder may be writing at this moment: reads are not atomic with writes.
func stableRecord(fd descriptor, slot int) (r record, err error) {
	for range holderReads {
		if r, err = readRecord(fd, slot); !errors.Is(err, errBadRecord) {
			return r, err
		}
	}
	return r, err
}
