//go:build unix && !linux

package main

import "syscall"

// childAttributes makes a process group. Only Linux can also tie the command's life to ours.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adoptOrphans is for Linux; elsewhere the system's first process waits for them.
func adoptOrphans() {}
