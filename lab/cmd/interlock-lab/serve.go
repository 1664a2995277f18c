package main

import (
	"context"
	"fmt"
	"io"

	"github.com/interlock-go/interlock/lab/internal/breaking"
	"github.com/interlock-go/interlock/lab/internal/story"
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
	how := story.T("open this address in a browser; Ctrl-C ends it", "请用浏览器打开这个地址；按 Ctrl-C 结束")
	fmt.Fprintln(stderr, "interlock lab:", how.In(s.lang))
	if err := page.Serve(ctx, l); err != nil {
		fmt.Fprintln(stderr, "interlock lab:", err)
		return exitFailed
	}
	return exitInterrupted
}
