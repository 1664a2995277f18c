// The process: everything else is in run (app.go), which tests call too.

package main

import (
	"context"
	"os"
)

// main only hands over what belongs to the process, so that tests can call run with streams and an environment of their
// own, many times at once.
func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}
