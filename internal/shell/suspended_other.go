//go:build !linux

package shell

import "time"

// MachineSuspended is not known on other systems: the standard library offers no clock that runs on while the machine
// is suspended. docs/limits/common.md says what follows from that.
func MachineSuspended() time.Duration { return 0 }
