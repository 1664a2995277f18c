package peer

import (
	"context"

	"github.com/interlock-go/interlock/filelock"
)

func interlockFile() Spec {
	return Spec{
		Name: "interlock-file",
		Does: "interlock on filelock, default options: local queue, flock on a kept descriptor, the path checked, " +
			"the token written into the file",
		Open: func(_ context.Context, at Place) (Peer, error) {
			d, err := filelock.New(at.Dir, nil)
			if err != nil {
				return nil, err
			}
			return onEngine(d)
		},
	}
}
