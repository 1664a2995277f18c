package main

import (
	"context"
	"fmt"
	"io"

	"github.com/interlock-go/interlock/lab/internal/breaking"
)

// servePage serves the page on which readers break locks themselves, until it is interrupted.
func (s *settings) servePage(ctx context.Context, stdout, stderr io.Writer) int {
	l, err := breaking.Listen(ctx, s.listen)
	if err != nil {
		fmt.Fprintln(stderr, "interlock lab:", err)
		return exitUsage
	}
	page := breaking.New(s.lang)
	fmt.Fprintf(stdout, "http://%s%s\n", l.Addr(), page.Path())
	fmt.Fprintln(stderr, "interlock lab: open this address in a browser; Ctrl-C ends it")
	if err := page.Serve(ctx, l); err != nil {
		fmt.Fprintln(stderr, "interlock lab:", err)
		return exitFailed
	}
	return exitInterrupted
}
