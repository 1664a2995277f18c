// Package exhibit holds what the exhibits of the lab share: the connection to Redis that they are given. Each exhibit
// is a package below this one, and each is broken on purpose: it does what an article about distributed locks does, so
// that the lab can show what goes wrong. Nothing but the lab may import them.
package exhibit

import (
	"context"
	"embed"
	"fmt"
)

// Sources are the files of the exhibits, which the lab's page shows beside what they do.
//
//go:embed d*/*.go
var Sources embed.FS

// Conn is a connection to a Redis: one command, one reply, which is a string, an int64, nil, or a []any of these. The
// lab stands between an exhibit and its server here: it writes down what is said, and can make a client stand still
// just before a command, which is where a garbage collection, a scheduler or a debugger may stop any program.
type Conn interface {
	Do(ctx context.Context, args ...string) (any, error)
}

// Int returns a reply that is a number. It takes what Do returns.
func Int(reply any, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("redis: %v instead of a number", reply)
	}
	return n, nil
}

// Text returns a reply that is a string, and false for Redis's null. It takes what Do returns.
func Text(reply any, err error) (string, bool, error) {
	if err != nil || reply == nil {
		return "", false, err
	}
	s, ok := reply.(string)
	if !ok {
		return "", false, fmt.Errorf("redis: %v instead of a string", reply)
	}
	return s, true, nil
}

// OK reports whether a reply is the status OK. It takes what Do returns.
func OK(reply any, err error) (bool, error) {
	s, _, err := Text(reply, err)
	return s == "OK", err
}

// Subscribe subscribes to a channel of a Redis. Each call of next returns with the next message.
type Subscribe func(ctx context.Context, channel string) (next func(ctx context.Context) error, err error)
