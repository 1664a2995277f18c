package filelock

import (
	"context"
	"os"
	"strconv"
	"syscall"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// Diagnose judges the folder: whether this process can write it, and whether LockFileEx excludes there. It tries that
// on a file of its own, which it removes.
func (d *Driver) Diagnose(ctx context.Context) []driver.Finding {
	checks := []func() driver.Finding{d.checkFolder, d.checkExclusion, checkWaiting}
	var findings []driver.Finding
	for _, check := range checks {
		if ctx.Err() != nil {
			break
		}
		findings = append(findings, check())
	}
	return enginekit.Explained(checksPage, findings)
}

func (d *Driver) checkFolder() driver.Finding {
	if err := writable(d.dir); err != nil {
		return enginekit.Fail("folder", adviceFor(err), "%s: %v", d.dir, err)
	}
	return driver.Finding{Check: "folder", Level: driver.LevelOK, Detail: d.dir + " can be written"}
}

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
