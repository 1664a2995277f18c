package peer

import (
	"context"

	"github.com/interlock-go/interlock/memlock"
)

func interlockMem() Spec {
	return Spec{
		Name:  "interlock-mem",
		Does:  "interlock on memlock, default options: what the core costs, on an engine without system calls",
		Alone: true,
		Open:  func(context.Context, Place) (Peer, error) { return onEngine(memlock.New(nil)) },
	}
}
