//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"syscall"

	"github.com/interlock-go/interlock/driver"
)

// What operators see: the locks of the folder that are held, by one walk through it. look.go looks at one file.

// listStep is how many folder entries are read at once, so that a large folder costs no large slice.
const listStep = 256

// Locks yields the locks of the folder that are held and whose names start with prefix. It takes no lock and disturbs
// nobody: it asks for the marks of holders, and reads their records. Holders that are not of this package (flock(1))
// are shown by their process, as far as the kernel tells. The name of a lock that is too long for a file name and is
// held by flock(1) may be cut. A lock whose file cannot be opened is listed as driver.LockInfo.Unreadable says.
//
// Outside Linux it yields an error matching driver.ErrUnsupported.
func (d *Driver) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		if !tellsHolders {
			yield(driver.LockInfo{}, fmt.Errorf("file: listing holders on this system: %w", driver.ErrUnsupported))
			return
		}
		d.stopLingering() // what this driver has released must not be listed
		l := lister{dir: d.dir, prefix: prefix, looks: d.looks}
		if err := l.each(ctx, yield); err != nil {
			yield(driver.LockInfo{}, err)
		}
	}
}

// lister is one walk through the folder.
type lister struct {
	dir, prefix string
	looks       bool      // a missing folder is no error
	foreign     *flockers // read once, when the first file without a mark is met
}

// each yields what it finds and returns what ended the walk, or nil if the caller's loop did.
func (l *lister) each(ctx context.Context, yield func(driver.LockInfo, error) bool) error {
	folder, err := os.Open(l.dir)
	if l.looks && errors.Is(err, fs.ErrNotExist) {
		return nil // no folder, no locks
	}
	if err != nil {
		return lookError(l.dir, reason(err)) // reading is all that a list does
	}
	defer func() { _ = folder.Close() }() // only read
	for {
		names, err := folder.Readdirnames(listStep)
		for _, file := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			info, held, err := l.look(file)
			if err != nil && isOfOneFile(err) {
				info.Unreadable, held, err = err.Error(), true, nil
			}
			if err != nil {
				return err
			}
			if held && !yield(info, nil) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return pathError("lock folder", l.dir, reason(err))
		}
	}
}

// look reports whether file is a lock file with the prefix that is held, and its holder.
func (l *lister) look(file string) (driver.LockInfo, bool, error) {
	name, ok := parseFileName(file)
	if !ok || !name.mayStart(l.prefix) {
		return driver.LockInfo{}, false, nil
	}
	path := l.dir + "/" + file
	fd, err := openAt(path, syscall.O_RDONLY, 0)
	if err == syscall.ENOENT {
		return driver.LockInfo{}, false, nil // removed since the folder was read
	}
	if err != nil {
		return driver.LockInfo{Kind: name.kind, Name: name.name}, false, pathError("lock file", path, err)
	}
	f := &lockFile{fd: fd, path: path}
	defer func() { _ = syscall.Close(fd) }() // only read
	if several(name.kind) {
		info, held := l.several(f, &name)
		return info, held && strings.HasPrefix(info.Name, l.prefix), nil
	}
	holder, held := l.holder(f, &name)
	if !held || !strings.HasPrefix(name.name, l.prefix) {
		return driver.LockInfo{}, false, nil
	}
	return driver.LockInfo{Kind: name.kind, Name: name.name, Limit: 1, Holders: []driver.Holder{holder}}, true, nil
}

// several returns the holders of f, a lock that several may hold at once.
func (l *lister) several(f *lockFile, name *parsedName) (driver.LockInfo, bool) {
	limit, _ := limitOf(f.fd) // it is not known where there are no holders either
	info := driver.LockInfo{Kind: name.kind, Limit: limit, Holders: holders(f.fd)}
	if len(info.Holders) == 0 { // perhaps flock(1)
		holder, held := l.holder(f, name)
		info.Name, info.Holders = name.name, []driver.Holder{holder}
		return info, held
	}
	if name.hashed {
		if r, err := stableRecord(f.fd, 0); err == nil {
			name.name = r.Name
		}
	}
	info.Name = name.name
	return info, true
}

// holder returns who holds f, and completes the name from the record.
func (l *lister) holder(f *lockFile, name *parsedName) (driver.Holder, bool) {
	marked := isHeld(f.fd)
	r, err := stableRecord(f.fd, 0)
	if name.hashed && err == nil {
		name.name = r.Name
	}
	if marked {
		return driver.Holder{
			Owner: r.Owner, Client: r.Client, Label: r.Label, Token: r.First, Weight: 1, Since: r.Since,
		}, true
	}
	// Read now and once for all files: an operator must not get an answer that is a second old.
	if l.foreign == nil {
		all := flockHolders()
		l.foreign = &all
	}
	if err := f.identify(); err != nil {
		return driver.Holder{}, false // a folder, for instance: nobody's lock
	}
	pid := l.foreign.of(f.id)
	return driver.Holder{Client: foreignClient(pid), Weight: 1}, pid != 0
}

// mayStart reports whether the lock's whole name may start with prefix. A hashed file name has only the beginning of
// it.
func (p *parsedName) mayStart(prefix string) bool {
	return strings.HasPrefix(p.name, prefix) || p.hashed && strings.HasPrefix(prefix, p.name)
}
