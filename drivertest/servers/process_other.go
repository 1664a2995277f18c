//go:build !linux

package servers

import "os/exec"

// dieWithUs does nothing: only Linux tells a process that its parent has ended.
func dieWithUs(*exec.Cmd) {}

// awaitStill does nothing: there is no telling.
func (*process) awaitStill() {}
