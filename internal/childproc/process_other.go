//go:build !linux

package childproc

import "os/exec"

// dieWithUs does nothing: only Linux tells a process that its parent has ended.
func dieWithUs(*exec.Cmd) {}

// awaitStill does nothing: there is no telling.
func awaitStill(int) {}

// doing says only that a process runs: there is no telling what it does.
func doing(int) string { return "runs" }
