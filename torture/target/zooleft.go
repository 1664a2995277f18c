package target

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
)

// zooLeft lists the nodes that are left below the root. What may be there is what zklock/wire.md has for free locks:
// the folders of kinds and of sessions, and for each lock an empty container, which the servers remove and do not tell
// from other nodes. So there is no session's own node and no request.
func zooLeft(addrs []string) left {
	return func(ctx context.Context) (found []string, err error) {
		err = onZooKeeper(ctx, addrs, func(c *zk.Conn) error {
			folders, _, err := c.Children(zooRoot)
			if err != nil {
				return err
			}
			for _, folder := range folders {
				path := zooRoot + "/" + folder
				if !slices.Contains([]string{"mutex", "rw", "election", "sessions"}, folder) {
					found = append(found, fmt.Sprintf("the node %s is none of interlock's", path))
					continue
				}
				in, err := zooLeftIn(c, path, folder == "sessions")
				if err != nil {
					return err
				}
				found = append(found, in...)
			}
			return nil
		})
		return found, err
	}
}

// zooLeftIn lists what is left in a folder, of locks or of sessions.
func zooLeftIn(c *zk.Conn, folder string, sessions bool) (found []string, err error) {
	names, _, err := c.Children(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		path := folder + "/" + name
		requests, _, err := c.Children(path)
		switch {
		case errors.Is(err, zk.ErrNoNode): // it has just been removed
		case err != nil:
			return nil, err
		case sessions:
			found = append(found, fmt.Sprintf("the node %s is of a session that has not ended", path))
		}
		for _, request := range requests {
			found = append(found, fmt.Sprintf("the node %s/%s holds or waits", path, request))
		}
	}
	return found, nil
}
