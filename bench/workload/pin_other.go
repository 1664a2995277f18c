//go:build !linux

package workload

import "errors"

const (
	clientProcessor = 0
	serverProcessor = 1
)

var errNoPin = errors.New("only on Linux can processes be kept on processors")

func pin(int, int) error { return errNoPin }

func unpin(int) error { return errNoPin }
