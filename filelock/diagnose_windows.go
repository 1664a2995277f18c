package filelock

import (
	"os"
	"strconv"
	"syscall"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// checks are all checks; see diagnose.go.
func (d *Driver) checks() []func() driver.Finding {
	return []func() driver.Finding{d.usable, d.checkExclusion, checkWaiting}
}

// lookingChecks are those that make no file.
func (d *Driver) lookingChecks() []func() driver.Finding { return []func() driver.Finding{d.usable} }

// checkExclusion locks a file of its own by one handle, and expects that a second handle is refused.
func (d *Driver) checkExclusion() driver.Finding {
	path := d.dir + "/.diagnose-" + strconv.Itoa(os.Getpid())
	one, err := openLockFile(path, d.dir)
	if err != nil {
		return enginekit.Fail("exclusion", adviceFor(err), "%v", err)
	}
	defer func() { one.close(); _ = os.Remove(path) }() // changes nothing about the finding
	two, err := openLockFile(path, d.dir)
	if err != nil {
		return enginekit.Fail("exclusion", adviceFor(err), "%v", err)
	}
	defer two.close()
	if err := one.tryLock(); err != nil {
		return enginekit.Fail("exclusion", adviceFor(err), "LockFileEx: %v", err)
	}
	if err := two.tryLock(); err != syscall.EWOULDBLOCK {
		return enginekit.Fail("exclusion", "name a folder on a local disk",
			"LockFileEx does not exclude a second handle: %v", err)
	}
	return driver.Finding{Check: "exclusion", Level: driver.LevelOK, Detail: "LockFileEx excludes a second handle"}
}

func checkWaiting() driver.Finding {
	return driver.Finding{Check: "waiting", Level: driver.LevelOK, Detail: "waits poll, as always on Windows"}
}
