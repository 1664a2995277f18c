//go:build !unix

package childproc

import (
	"errors"
	"os"
)

// Suspend fails: the system has no signals for it.
func Suspend(*os.Process) error { return errors.ErrUnsupported }

// Resume fails: the system has no signals for it.
func Resume(*os.Process) error { return errors.ErrUnsupported }
