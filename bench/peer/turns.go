package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// turns let workers of all processes of a run go one after the other, first come, first served, without any server:
// what then is measured is what each does in its turn. There is a file, with how many have come and whose turn it is,
// and a pipe with a name for each who waits. Whoever dies stops the others for good, so it is no lock one could use.
type turns struct {
	file string
	mine uint64 // the place of this worker
}

// turnsOf is how a worker gets the lock of that name.
func turnsOf(at Place, name string) turns { return turns{file: at.Dir + "/turns-" + name} }

// counts are what the file holds.
type counts struct{ come, served uint64 }

// lock waits for the turn. ctx ends the wait, and with it the line.
func (t *turns) lock(ctx context.Context) error {
	var wait *os.File
	err := t.change(func(c *counts) (err error) {
		t.mine = c.come
		c.come++
		if t.mine > c.served {
			wait, err = openPipe(t.pipe(t.mine))
		}
		return err
	})
	if err != nil || wait == nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = wait.SetReadDeadline(time.Unix(1, 0)) })() // fails only if it is closed
	_, err = wait.Read(make([]byte, 1))
	return errors.Join(err, wait.Close(), os.Remove(wait.Name()))
}

// unlock tells the next, if one has come.
func (t *turns) unlock() error {
	next := t.mine + 1
	waits := false
	err := t.change(func(c *counts) error {
		c.served, waits = next, next < c.come
		return nil
	})
	if err != nil || !waits {
		return err
	}
	pipe, err := os.OpenFile(t.pipe(next), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	_, err = pipe.Write([]byte{1})
	return errors.Join(err, pipe.Close())
}

func (t *turns) pipe(n uint64) string { return fmt.Sprintf("%s-%d", t.file, n) }

// openPipe makes a pipe and opens both of its ends, so that it has one whoever comes and goes.
func openPipe(path string) (*os.File, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
}

// here keeps goroutines of one process from each other, before they block threads for the sake of other processes.
var here sync.Mutex

// change has f change the counts while nobody else does.
func (t *turns) change(f func(*counts) error) (err error) {
	here.Lock()
	defer here.Unlock()
	file, err := os.OpenFile(t.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }() // ends flock
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	b := make([]byte, 16)
	if n, err := file.ReadAt(b, 0); n != 0 && n != len(b) {
		return fmt.Errorf("the counts are damaged: %w", err)
	}
	c := counts{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
	if err := f(&c); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b, c.come)
	binary.LittleEndian.PutUint64(b[8:], c.served)
	_, err = file.WriteAt(b, 0)
	return err
}
