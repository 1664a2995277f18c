// The process: everything else is in run (app.go), which tests call too.

package main

import (
	"context"
	"os"
)

// main only hands over what belongs to the process, so that tests can call run with streams and an environment of their
// own, many times at once.
func main() {
	if os.Args[0] == keeperName {
		keep(os.NewFile(keeperPipe, "pipe"), os.Stderr)
		return
	}
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	a.process = true
	os.Exit(a.run(context.Background(), os.Args[1:]))
}
