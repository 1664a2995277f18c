//go:build !linux

// Constants of the terminal on other systems; see screen.go.

package main

import "golang.org/x/sys/unix"

// How the settings of a terminal are read and written.
const (
	termiosGet = unix.TIOCGETA
	termiosSet = unix.TIOCSETA
)
