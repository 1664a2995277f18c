//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// holderReads is how often a record is read that is just being written.
const holderReads = 3

// heldError tells what is known of the lock's holder. It is called when the lock was found taken or waited for; by the
// time it reads the record, the holder may have changed, and then that one is told.
func (d *Driver) heldError(f *lockFile, key driver.Key) *driver.HeldError {
	e := d.ourHolder(f, key)
	if e.Token == 0 && !isHeld(f.fd) {
		if pid := flockHolders().of(f.id); pid != 0 {
			e.Client = foreignClient(pid)
		}
	}
	return e
}

// ourHolder is heldError as far as the lock's file itself tells. It knows no holder that is not of this package.
func (d *Driver) ourHolder(f *lockFile, key driver.Key) *driver.HeldError {
	e := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if isHeld(f.fd) {
		if r, err := stableRecord(f.fd); err == nil {
			e.Owner, e.Client, e.Token, e.Since = r.Owner, r.Client, r.First, r.Since
		}
	}
	return e
}

// foreignClient stands for a holder that is not of this package, such as flock(1).
func foreignClient(pid int) string { return fmt.Sprintf("process %d", pid) }

// stableRecord reads a record that its holder may be writing at this moment: reads are not atomic with writes.
func stableRecord(fd int) (r record, err error) {
	for range holderReads {
		if r, err = readRecord(fd); !errors.Is(err, errBadRecord) {
			return r, err
		}
	}
	return r, err
}
