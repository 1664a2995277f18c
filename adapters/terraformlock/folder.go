package terraformlock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
)

// folder is where states are: STATE.tfstate, the one before as STATE.tfstate.backup, the newest token as
// STATE.fence, and what the run of that token says of itself as STATE.lock.
type folder struct {
	dir   string
	files *interlock.Client // one writer for each state, also among servers
}

func openFolder(files *interlock.Client, dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("terraformlock: %w", err)
	}
	f := &folder{dir, files}
	return f, f.sweep()
}

// newName begins the name of a file that is not whole yet; what it becomes follows. No state begins with a dot.
const newName = ".new-"

// background is for what New does, which has no caller's context and asks nothing but this machine.
var background = context.Background() //nolint:forbidigo // New takes no context, and waits for nobody

// sweep removes what servers that were killed had half written: secrets are in it. What another server is writing now
// stays: it holds the lock of files. A next write of the state would replace it too.
func (f *folder) sweep() error {
	root := f.dir + string(filepath.Separator) // followed if it is a link
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // another server has just made it whole
			return nil
		}
		if err != nil && entry != nil && entry.IsDir() && path != root {
			return fs.SkipDir // not ours, as lost+found
		}
		if err != nil {
			return fmt.Errorf("terraformlock: %w", err)
		}
		if becomes, ok := strings.CutPrefix(filepath.Base(path), newName); ok {
			f.removeHalf(path, filepath.Join(filepath.Dir(path), becomes))
			removeNameless(path, becomes, entry)
		}
		return nil
	})
}

// removeHalf removes a file that is not whole, unless somebody writes it.
func (f *folder) removeHalf(path, becomes string) {
	state, err := filepath.Rel(f.dir, becomes)
	if err != nil {
		return
	}
	state = filepath.ToSlash(state)
	for _, kind := range []string{".tfstate.backup", ".tfstate", ".fence", ".lock"} {
		if whose, ok := strings.CutSuffix(state, kind); ok {
			f.whenUnused(background, whose, func() { _ = os.Remove(path) })
			return
		}
	}
}

// longestWrite is more than any server needs to write a file.
const longestWrite = time.Hour

// removeNameless removes a half-written file of an earlier version, whose name is a number and not what it becomes. So
// its age alone tells that nobody writes it.
func removeNameless(path, number string, entry fs.DirEntry) {
	if _, err := strconv.ParseUint(number, 10, 64); err != nil {
		return
	}
	info, err := entry.Info()
	if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > longestWrite {
		_ = os.Remove(path)
	}
}

// whenUnused calls do while no server writes the state, or not at all.
func (f *folder) whenUnused(ctx context.Context, state string, do func()) {
	gate, err := f.files.Mutex(state, nil).TryLock(ctx)
	if err != nil {
		return
	}
	do()
	_ = gate.Unlock(context.WithoutCancel(ctx))
}

func (f *folder) path(state, kind string) string {
	return filepath.Join(f.dir, filepath.FromSlash(state)+kind)
}

// read returns a state, or nil if there is none.
func (f *folder) read(state string) ([]byte, error) {
	text, err := os.ReadFile(f.path(state, ".tfstate"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// staleError says that a newer holder has had the lock.
type staleError struct{ newer, own uint64 }

// Error names both tokens.
func (e *staleError) Error() string {
	return fmt.Sprintf("the lock with token %d is overtaken by a later one with token %d", e.own, e.newer)
}

// write writes a state, or removes it if text is nil, unless a newer holder has written. The token is looked at and
// raised under a file lock that ends with its process. So a server that stands still in between keeps others waiting,
// and overtakes nobody.
func (f *folder) write(ctx context.Context, state string, token uint64, text []byte) error {
	return f.fenced(ctx, state, token, func() error { return f.put(state, text) })
}

// raise keeps out all older holders from now on, before the new one has read the state. It keeps what the run says of
// itself for other servers, and for this one after it was started again. That is for people to read, so that it cannot
// be kept is no failure.
func (f *folder) raise(ctx context.Context, state string, token uint64, info []byte) error {
	return f.fenced(ctx, state, token, func() error {
		_ = replace(f.path(state, ".lock"), info)
		return nil
	})
}

func (f *folder) fenced(ctx context.Context, state string, token uint64, then func() error) error {
	return f.files.Do(ctx, state, func(context.Context) error {
		if err := os.MkdirAll(filepath.Dir(f.path(state, "")), 0o700); err != nil {
			return err
		}
		newest, err := f.newest(state)
		if err != nil {
			return err
		}
		if token < newest {
			return &staleError{newest, token}
		}
		if token > newest {
			_ = os.Remove(f.path(state, ".lock")) // it is of an older token
			if err := replace(f.path(state, ".fence"), []byte(strconv.FormatUint(token, 10)+"\n")); err != nil {
				return err
			}
		}
		return then()
	})
}

// newest is the token of the last write, or 0.
func (f *folder) newest(state string) (uint64, error) {
	text, err := os.ReadFile(f.path(state, ".fence"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// put puts a state in the place of the one before, which stays beside it. One that is there already has been put by a
// request whose answer was lost: what was before that one is kept.
func (f *folder) put(state string, text []byte) error {
	before, err := f.read(state)
	if err != nil {
		return err
	}
	if text != nil && bytes.Equal(before, text) {
		return nil
	}
	if before != nil {
		if err := replace(f.path(state, ".tfstate.backup"), before); err != nil {
			return err
		}
	}
	if text != nil {
		return replace(f.path(state, ".tfstate"), text)
	}
	if err := os.Remove(f.path(state, ".tfstate")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// replace writes a file whole or not at all, also if the machine loses its power. The caller has the lock of files of
// the state, so that nobody else writes a file of that name.
func replace(name string, text []byte) error {
	half := filepath.Join(filepath.Dir(name), newName+filepath.Base(name))
	file, err := os.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	if err := os.Rename(file.Name(), name); err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	_ = folder.Sync() // some systems cannot, and the rename is done
	return folder.Close()
}

// forgetInfo removes what the run of that token has said of itself, and never that of a later one. A run that is at the
// state now is not waited for: nobody is shown the words of a run whose token has passed.
func (f *folder) forgetInfo(ctx context.Context, state string, token uint64) {
	f.whenUnused(ctx, state, func() {
		if newest, err := f.newest(state); err == nil && newest <= token {
			_ = os.Remove(f.path(state, ".lock"))
		}
	})
}

// info returns what the run has said of itself whose lock has that token, as far as is known. Of engines that do not
// tell tokens it is 0, and the last run's words are taken. The token is read first: whatever is raised later, the words
// are not older.
func (f *folder) info(state string, token uint64) []byte {
	if newest, err := f.newest(state); token != 0 && (err != nil || newest != token) {
		return nil
	}
	text, err := os.ReadFile(f.path(state, ".lock"))
	if err != nil || !json.Valid(text) {
		return nil
	}
	return text
}
