package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// Disk is a small file system in memory for the data of servers, which can be full. This process and its servers see
// it, each other process only through [Disk.Folder]; it is gone with them, however they end.
type Disk struct {
	t    testing.TB
	room *room
	size int

	mu      sync.Mutex // guards folders
	folders []string
}

// filler is the file that fills a disk.
const filler = "filler"

// NewDisk returns a disk with room for so many megabytes for each server, or skips t where [Apart]
// says that there can be none.
func NewDisk(t testing.TB, megabytes int) *Disk {
	t.Helper()
	apart(t)
	r, err := newMountRoom()
	if err != nil {
		t.Fatalf("a disk: %v", err)
	}
	t.Cleanup(r.close)
	return &Disk{t: t, room: r, size: megabytes}
}

// folder returns an empty folder for a server. Without a disk it is one of the test.
func (d *Disk) folder(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if d == nil {
		return dir
	}
	var err error
	d.room.do(func() { err = mountMemory(dir, fmt.Sprintf("mode=700,size=%dm", d.size)) })
	if err != nil {
		t.Fatalf("a disk: %v", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.folders = append(d.folders, dir)
	return dir
}

// Folder returns an empty folder by a path under which each process of this user finds it while this process lives.
func (d *Disk) Folder(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("/proc/%d/task/%d/root%s", os.Getpid(), d.room.id, d.folder(t))
}

// Fill leaves no room on the disk.
func (d *Disk) Fill() error {
	return d.each(func(dir string) error {
		f, err := os.OpenFile(filepath.Join(dir, filler), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			return err
		}
		for size := 1 << 20; err == nil && size > 0; { // large steps first
			if _, err = f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
				size, err = size/2, nil
			}
		}
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		if errors.Is(err, syscall.ENOSPC) {
			return nil
		}
		return err
	})
}

// Free makes room again.
func (d *Disk) Free() error {
	return d.each(func(dir string) error {
		if err := os.Remove(filepath.Join(dir, filler)); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
}

// each does f for each folder, where the disk is seen.
func (d *Disk) each(f func(dir string) error) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, dir := range d.folders {
		d.room.do(func() { err = errors.Join(err, f(dir)) })
	}
	return err
}
