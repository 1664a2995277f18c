//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import "github.com/interlock-go/interlock/driver"

// The fields of statfs differ from one BSD to the next, and NetBSD has none: nothing is said there.

func fileSystem(string) (name string, local bool, err error) { return "", false, driver.ErrUnsupported }

func freeSpace(string) (bytes, files uint64, err error) { return 0, 0, driver.ErrUnsupported }
