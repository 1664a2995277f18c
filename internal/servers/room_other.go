//go:build !linux

package servers

import (
	"errors"
	"net"
)

func newNetRoom() (*room, error) { return nil, errors.ErrUnsupported }

func newMountRoom() (*room, error) { return nil, errors.ErrUnsupported }

func mountMemory(string, string) error { return errors.ErrUnsupported }

func (*room) dial(string, string) (net.Conn, error) { return nil, errors.ErrUnsupported }
