// Constants of the terminal on Linux; see screen.go.

package main

import "golang.org/x/sys/unix"

// How the settings of a terminal are read and written. TCSETS does not wait until all output was sent.
const (
	termiosGet = unix.TCGETS
	termiosSet = unix.TCSETS
)
