//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"slices"

	"github.com/interlock-go/interlock/driver"
)

// Open files without a hold, kept for the next Acquire.

// idleFiles keeps the descriptors of the locks released last, because opening and closing the file would be a third of
// an uncontended Acquire and Release. The zero value is empty. Guarded by Driver.mu.
//
// A file that lingers lies here too. A kept file may have been unlinked meanwhile; like every file it is compared with
// the path under its lock.
type idleFiles struct {
	slots [16]*lockFile
	next  int // the slot that is reused next when all are taken
}

// take returns the open file for key, or nil.
func (s *idleFiles) take(key driver.Key) *lockFile {
	for i, f := range s.slots {
		if f != nil && f.key == key {
			s.slots[i] = nil
			return f
		}
	}
	return nil
}

// put keeps f, which nobody holds. It returns the file that had to make room and must be closed, or nil.
func (s *idleFiles) put(f *lockFile) *lockFile {
	free := -1
	for i, g := range s.slots {
		switch {
		case g == nil:
			free = i
		case g.key == f.key: // two of this driver's: the one that was freed last knows whose turn it is
			if g.turn.freed.After(f.turn.freed) {
				return f
			}
			s.slots[i] = f
			return g
		}
	}
	if free < 0 {
		free = s.next
		s.next = (s.next + 1) % len(s.slots)
	}
	f, s.slots[free] = s.slots[free], f
	return f
}

// has reports whether f lies here.
func (s *idleFiles) has(f *lockFile) bool { return slices.Contains(s.slots[:], f) }

// remove takes f out.
func (s *idleFiles) remove(f *lockFile) {
	if i := slices.Index(s.slots[:], f); i >= 0 {
		s.slots[i] = nil
	}
}

// takeLingering removes and returns the files that still have their lock.
func (s *idleFiles) takeLingering() []*lockFile {
	var files []*lockFile
	for i, f := range s.slots {
		if f != nil && f.linger.on {
			files = append(files, f)
			s.slots[i] = nil
		}
	}
	return files
}

// clear removes and returns all files, which must be closed.
func (s *idleFiles) clear() []*lockFile {
	var files []*lockFile
	for i, f := range s.slots {
		if f != nil {
			files = append(files, f)
			s.slots[i] = nil
		}
	}
	return files
}
