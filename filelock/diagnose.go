//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// What "interlock doctor" says about a folder.

// Diagnose judges the folder: whether this process can write it, whether it is on a local file system with space left,
// whether flock excludes there, and how waits are done. It tries flock on a file of its own, which it removes. It takes
// no lock of others and changes nothing. With Options.ReadOnly it makes no file: it judges whether this process can
// read the folder, and does not try flock.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	checks := []func() driver.Finding{d.checkFolder, d.checkFileSystem, d.checkSpace, d.checkFlock, d.checkWaiting}
	if d.looks {
		checks = []func() driver.Finding{d.checkFolder, d.checkFileSystem, d.checkSpace}
	}
	if _, err := os.Stat(d.dir); d.looks && errors.Is(err, fs.ErrNotExist) {
		return enginekit.Explained(checksPage, []driver.Finding{{
			Check: "folder", Level: driver.LevelWarn, Detail: d.dir + " is not there",
			Advice: "see whether the path is right; the first lock makes the folder",
		}})
	}
	var findings []driver.Finding
	for _, check := range checks {
		if ctx.Err() != nil {
			break
		}
		findings = append(findings, check())
	}
	return enginekit.Explained(checksPage, findings)
}

// checkFolder judges whether this process can make and remove files in the folder, or read it if it only looks, and
// then who else can.
func (d *Driver) checkFolder() driver.Finding {
	f := driver.Finding{Check: "folder", Level: driver.LevelOK, Detail: d.dir + " can be written"}
	fits := writable
	if d.looks {
		f.Detail, fits = d.dir+" can be read", readable
	}
	if err := fits(d.dir); err != nil {
		f.Level, f.Detail, f.Advice = driver.LevelFail, fmt.Sprintf("%s: %v", d.dir, err), adviceFor(err)
		return f
	}
	info, err := os.Stat(d.dir)
	if err != nil {
		f.Level, f.Detail, f.Advice = driver.LevelFail, err.Error(), adviceFor(err)
		return f
	}
	return judgeMode(f, info)
}

// readable returns why this process cannot list the folder, or nil.
func readable(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return reason(err)
	}
	return reason(f.Close())
}

// judgeMode looks at who else may do what in the folder. On Linux a new file has the group of its process, unless the
// folder has the setgid bit. On other systems it has that of the folder.
func judgeMode(f driver.Finding, info fs.FileInfo) driver.Finding {
	mode := info.Mode()
	stat, known := info.Sys().(*syscall.Stat_t)
	switch {
	case mode&0o002 != 0 && mode&fs.ModeSticky == 0:
		return enginekit.Warn("folder", "chmod o-w it, or +t so that nobody removes files of others",
			"%s; its mode is %v: everybody may remove lock files, which lets a second process in", f.Detail, mode)
	case runtime.GOOS == "linux" && mode&0o022 == 0o020 && mode&fs.ModeSetgid == 0 &&
		known && stat.Gid != uint32(os.Getegid()):
		return enginekit.Warn("folder", "chmod g+s it",
			"%s; its mode is %v, and its group is not that of this process: "+
				"lock files that it makes cannot be opened by others of the folder's group", f.Detail, mode)
	}
	return f
}

// checkFileSystem judges whether the folder is on a local file system. On others flock depends on server and mount
// options, so they get a warning and no failure.
func (d *Driver) checkFileSystem() driver.Finding {
	f := driver.Finding{Check: "file system", Level: driver.LevelOK}
	switch name, local, err := fileSystem(d.dir); {
	case err != nil:
		f.Level, f.Detail = driver.LevelWarn, fmt.Sprintf("the kind of file system cannot be found out: %v", err)
		f.Advice = "make sure that it is a local one"
	case !local:
		f.Level, f.Detail = driver.LevelWarn, "the folder is on "+name+
			", where flock depends on server and mount options"
		f.Advice = "name a folder on a local file system; for several machines use another engine"
	default:
		f.Detail = "the folder is on " + name
	}
	return f
}

// fewBytes is less than a handful of new lock files need.
const fewBytes = 1 << 20

// checkSpace judges the free bytes and inodes. Only a new lock needs any: the records of existing ones have their
// place.
func (d *Driver) checkSpace() driver.Finding {
	f := driver.Finding{Check: "space", Level: driver.LevelOK}
	const advice = "free space or inodes: a new lock's file could not be written; existing ones still work"
	switch bytes, files, err := freeSpace(d.dir); {
	case err != nil:
		f.Level, f.Detail = driver.LevelWarn, fmt.Sprintf("free space cannot be found out: %v", err)
	case bytes == 0 || files == 0:
		f.Level, f.Detail, f.Advice = driver.LevelFail, "the file system is full", advice
	case bytes < fewBytes:
		f.Level, f.Detail, f.Advice = driver.LevelWarn, fmt.Sprintf("%d bytes are free", bytes), advice
	default:
		f.Detail = fmt.Sprintf("%d MiB are free", bytes/(1<<20))
	}
	return f
}

// checkFlock locks a file of its own through two descriptors. The file's name is not that of a lock, so nobody waits
// for it.
func (d *Driver) checkFlock() driver.Finding {
	f := driver.Finding{Check: "exclusion", Level: driver.LevelOK, Detail: "flock excludes a second open file"}
	fail := func(err error) driver.Finding {
		f.Level, f.Detail, f.Advice = driver.LevelFail, err.Error(), adviceFor(err)
		return f
	}
	temp, err := os.CreateTemp(d.dir, ".diagnose-*")
	if err != nil {
		return fail(err)
	}
	// Errors of closing and removing change nothing about the finding.
	defer func() { _ = os.Remove(temp.Name()); _ = temp.Close() }()
	second, err := os.Open(temp.Name())
	if err != nil {
		return fail(err)
	}
	defer func() { _ = second.Close() }()
	if err := flock(int(temp.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fail(fmt.Errorf("flock: %w", err))
	}
	err = flock(int(second.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		f.Level, f.Detail = driver.LevelFail, "flock does not exclude: two open files had the same lock"
		f.Advice = "name a folder on a local file system"
		return f
	}
	if err != syscall.EWOULDBLOCK {
		return fail(fmt.Errorf("flock: %w", err))
	}
	return f
}

// checkWaiting warns if waits poll, because no signal is left that could end one in the kernel.
func (d *Driver) checkWaiting() driver.Finding {
	f := driver.Finding{Check: "waiting", Level: driver.LevelOK, Detail: "waits sleep in the kernel"}
	if d.interrupter() == nil {
		f.Level = driver.LevelWarn
		f.Detail = fmt.Sprintf("waits poll every %v to %v: no signal can end a wait in the kernel here", minPause,
			maxPause)
		f.Advice = "on Linux with amd64 or arm64, leave one of the signals 50 to 62 to Go's handler"
	}
	return f
}
