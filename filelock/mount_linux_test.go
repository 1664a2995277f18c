package filelock

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// onTmpfs runs body in a process that has a tmpfs of its own, mounted with options at a folder. Without root it uses a
// user namespace.
func onTmpfs(t *testing.T, options string, body func(t *testing.T, dir string)) {
	t.Helper()
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	rerun(t, attr, func(t *testing.T) {
		dir := t.TempDir()
		// Private first, so that the mount is not seen outside. In a chroot whose root is no mount this is not possible
		// (EINVAL); there the unmounting has to do.
		if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil &&
			err != syscall.EINVAL {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		}()
		body(t, dir)
	})
}

// fill writes a file until nothing fits any more.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// refused checks an Acquire that must fail with errno and leave nothing.
func refused(t *testing.T, d *Driver, name string, errno syscall.Errno, advice string) {
	t.Helper()
	files := descriptors(t)
	_, err := d.Acquire(context.Background(), request(newID(), name))
	wantError(t, err, errno, d.path(mutex(name)), advice)
	if n := descriptors(t); n != files {
		t.Errorf("%d descriptors, %d before", n, files)
	}
	if got := list(t, d, name); len(got) != 0 {
		t.Errorf("held: %+v", got)
	}
}

func TestAcquire_OnAFullDisk_SaysSoAndHoldsNothing(t *testing.T) {
	onTmpfs(t, "size=64k", func(t *testing.T, dir string) {
		d, other := open(t, dir), open(t, dir)
		defer d.Close()
		defer other.Close()
		known := newID()
		mustTry(t, d, known, "known")
		release(t, d, known, "known")
		fill(t, dir+"/filler")
		refused(t, d, "x", syscall.ENOSPC, "free space")
		if got := d.Diagnose(t.Context())[0]; got.Check != "space" || got.Level != driver.LevelFail {
			t.Errorf("diagnosed first: %+v", got)
		}
		mustTry(t, d, newID(), "known") // whose record has its place already
		if err := os.Remove(dir + "/filler"); err != nil {
			t.Fatal(err)
		}
		mustTry(t, other, newID(), "x")
	})
}

// The record of a slot that nobody has had before has no place, and only operators read it.
func TestAcquire_OfFreePermitsOnAFullDisk_IsGranted(t *testing.T) {
	onTmpfs(t, "size=64k", func(t *testing.T, dir string) {
		d := open(t, dir)
		defer d.Close()
		permit := func() error {
			r := inside(newID(), driver.Shared, 40, 1, "x")
			r.Try = true
			_, err := d.Acquire(context.Background(), r)
			return err
		}
		if err := permit(); err != nil { // the lock's own record has its place now
			t.Fatal(err)
		}
		fill(t, dir+"/filler")
		for range 39 {
			if err := permit(); err != nil {
				t.Fatal(err)
			}
		}
		if err := permit(); !errors.Is(err, driver.ErrHeld) {
			t.Errorf("beyond the limit: %v", err)
		}
	})
}

func TestAcquire_WithoutInodes_SaysSoAndHoldsNothing(t *testing.T) {
	onTmpfs(t, "nr_inodes=2", func(t *testing.T, dir string) {
		d := open(t, dir)
		defer d.Close()
		mustTry(t, d, newID(), "the last inode")
		refused(t, d, "x", syscall.ENOSPC, "inodes")
	})
}

func TestReadOnlyFileSystem_IsTold(t *testing.T) {
	onTmpfs(t, "", func(t *testing.T, dir string) {
		d := open(t, dir)
		defer d.Close()
		id := newID()
		mustTry(t, d, id, "known")
		release(t, d, id, "known")
		d.closeIdle()
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		refused(t, d, "x", syscall.EROFS, "writable")
		refused(t, d, "known", syscall.EROFS, "writable")
		if got := d.Diagnose(t.Context())[0]; got.Check != "folder" || got.Level != driver.LevelFail {
			t.Errorf("diagnosed first: %+v", got)
		}
		looks, err := New(dir, &Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer looks.Close()
		if got := list(t, looks, ""); len(got) != 0 {
			t.Errorf("held: %+v", got)
		}
		for _, f := range looks.Diagnose(t.Context()) {
			if f.Level == driver.LevelFail || f.Check == "exclusion" {
				t.Errorf("diagnosed to look: %+v", f)
			}
		}
		for _, path := range []string{dir, dir + "/new"} {
			if _, err := New(path, nil); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
		}
	})
}
