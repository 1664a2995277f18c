//go:build !linux

package servers

import "os/exec"

// dieWithUs does nothing: only Linux tells a process that its parent has ended.
func dieWithUs(*exec.Cmd) {}

// awaitStill does nothing: there is no telling.
func (*process) awaitStill() {}

// doing says only that a process runs: there is no telling what it does.
func doing(int) string { return "runs" }
