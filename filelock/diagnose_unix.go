//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// The checks on Unix; see diagnose.go.

// checks are all checks.
func (d *Driver) checks() []func() driver.Finding {
	return []func() driver.Finding{d.checkFolder, d.checkFileSystem, d.checkSpace, d.checkFlock, d.checkWaiting}
}

// lookingChecks are those that make no file.
func (d *Driver) lookingChecks() []func() driver.Finding {
	return []func() driver.Finding{d.checkFolder, d.checkFileSystem, d.checkSpace}
}

// checkFolder judges whether this process can use the folder, and then who else can do what in it.
func (d *Driver) checkFolder() driver.Finding {
	f := d.usable()
	if f.Level != driver.LevelOK {
		return f
	}
	info, err := os.Stat(d.dir)
	if err != nil {
		f.Level, f.Detail, f.Advice = driver.LevelFail, err.Error(), adviceFor(err)
		return f
	}
	return judgeMode(f, info)
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
