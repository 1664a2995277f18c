package filelock

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"syscall"

	"github.com/interlock-go/interlock/driver"
)

// Slots: what each holder of a read/write lock or of permits has inside (gate_linux.go). A mark tells what it holds,
// and a record at the slot's place in the file who it is. Only the marks count; the records are for operators.
//
// A slot's mark is as long as the permits that it stands for, and exclusive if the hold is. A mark of the limit's
// length stands elsewhere, so the limit is in force for as long as somebody is inside, and no longer.

const (
	limitMark  = firstMark + 1<<32
	slotMarks0 = firstMark + 1<<33 // the mark of slot 0, which nobody has: its record is the lock's own
	slotStride = 1 << 32
	maxSlots   = 1 << 20
)

var errNoSlot = errors.New("it has as many holders as it can have")

// slotMark is a slot that is taken.
type slotMark struct {
	slot      int
	weight    int // the length of the mark: permits, or 1
	exclusive bool
}

// slotMarks returns the slots that other open files than fd have, in any order. The kernel shows one mark of a range at
// a time, whichever it likes, so the ranges on both sides are asked for again. That costs two calls for each holder.
func slotMarks(fd int) ([]slotMark, error) {
	type span struct{ from, to int64 }
	var found []slotMark
	open := []span{{slotMarks0, slotMarks0 + maxSlots*slotStride}}
	for len(open) > 0 {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: s.from, Len: s.to - s.from}
		if err := syscall.FcntlFlock(uintptr(fd), ofdGet, &l); err != nil {
			return nil, gateError(err)
		}
		if l.Type == syscall.F_UNLCK {
			continue
		}
		slot := (l.Start - slotMarks0) / slotStride
		found = append(found, slotMark{int(slot), int(l.Len), l.Type == syscall.F_WRLCK})
		if before := slotMarks0 + slot*slotStride; s.from < before {
			open = append(open, span{s.from, before})
		}
		if after := slotMarks0 + (slot+1)*slotStride; after < s.to {
			open = append(open, span{after, s.to})
		}
	}
	return found, nil
}

// freeSlot returns a slot that nobody has. It guesses, among twice as many slots each time: looking at all that are
// taken would cost the more the more there are. The caller has the gate, so that nobody else takes the slot.
func freeSlot(fd int) (int, error) {
	for among := 1; among < maxSlots; among *= 2 {
		slot := 1 + rand.IntN(among)
		l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: slotMarks0 + int64(slot)*slotStride, Len: slotStride}
		if err := syscall.FcntlFlock(uintptr(fd), ofdGet, &l); err != nil {
			return 0, gateError(err)
		}
		if l.Type == syscall.F_UNLCK {
			return slot, nil
		}
	}
	return 0, errNoSlot
}

// markSlot takes f's slot for r, and puts the limit in force. All permits are taken by one system call, so nobody has a
// part of them. The caller has the gate.
func (f *lockFile) markSlot(r *driver.Request) error {
	kind, weight := int16(syscall.F_RDLCK), int64(1)
	switch {
	case r.Mode == driver.Exclusive:
		kind = syscall.F_WRLCK
	case r.Kind == driver.KindSemaphore:
		weight = int64(r.Weight)
		if err := setMark(f.holding(), syscall.F_RDLCK, limitMark, int64(r.Limit)); err != nil {
			return err
		}
	}
	return setMark(f.holding(), kind, slotMarks0+int64(f.slot)*slotStride, weight)
}

// limitOf returns the limit that is in force, or 0 if nobody is inside.
func limitOf(fd int) (int, error) {
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: limitMark, Len: 1}
	if err := syscall.FcntlFlock(uintptr(fd), ofdGet, &l); err != nil {
		return 0, gateError(err)
	}
	if l.Type == syscall.F_UNLCK {
		return 0, nil
	}
	return int(l.Len), nil
}

// holders returns who is inside, from the slots' records, in the order of their tokens.
func holders(fd int) (all []driver.Holder) {
	marks, _ := slotMarks(fd) // where there can be none, nobody is inside
	for _, m := range marks {
		r, _ := stableRecord(fd, m.slot) // a record that cannot be read leaves a holder without a name
		all = append(all, driver.Holder{
			Owner: r.Owner, Client: r.Client, Label: r.Label, Token: r.First, Since: r.Since,
			Weight: m.weight, Shared: !m.exclusive,
		})
	}
	slices.SortFunc(all, func(a, b driver.Holder) int { return cmp.Compare(a.Token, b.Token) })
	return all
}
