// Market is a marketplace in Redis, where sellers list items and buyers buy them, kept correct in
// four ways. Start it with
//
//	go run ./market
//
// It starts a Redis of its own, or says what to install. Buying an item reads its price and the buyer's money, and then
// moves the money one way and the item the other. Nothing may change in between, and these are the ways to see to it:
//
//   - WATCH: read, prepare, and have Redis refuse the change if the market or the buyer has changed since (optimistic:
//     WATCH, MULTI, EXEC), then begin again. Whoever lists or buys anything makes all others begin again.
//   - SETNX: one lock for the whole market, made of SETNX by hand, whose waiters ask again and again without a pause.
//     It is the lock of the article; do not use it.
//   - one lock: one lock for the whole market, of interlock. Waiters are woken, in order.
//   - a lock per item: who buys one item does not keep others from buying another.
//
// Each way is run with 1 seller and 1 buyer, 5 and 1, 5 and 5, as the article did (60 s each; -duration 60s does that
// too). Its figures are printed beside ours. After each run all money and all items are counted: nothing may have been
// lost or made. If anything was, the program ends with 1. -svg FILE draws a picture, beside the table:
//
//	go run ./market -separate -duration 60s -svg market/market.svg
//
// How much each way buys depends on the machine and on what else it does, so a goal that is missed is
// printed and changes nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/interlock-go/interlock/examples/internal/command"
	"github.com/interlock-go/interlock/examples/internal/host"
)

// settings say what is run.
type settings struct {
	duration time.Duration // of each row
	crowds   []crowd
	ways     []way
	separate bool // each seller and buyer has clients of its own
	svg      string
}

// crowd says how many trade at once.
type crowd struct{ sellers, buyers int }

func (c crowd) String() string { return fmt.Sprintf("%d/%d", c.sellers, c.buyers) }

func main() {
	command.Main(run)
}

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := command.Flags("market", stderr)
	var s settings
	flags.DurationVar(&s.duration, "duration", 3*time.Second, "of each row; 60s is the article's")
	flags.BoolVar(&s.separate, "separate", false,
		"clients of its own for each seller and buyer, as if each were a process")
	flags.StringVar(&s.svg, "svg", "", "file to draw a picture into")
	crowds := flags.String("crowds", "1/1,5/1,5/5", "sellers/buyers of the rows")
	names := flags.String("ways", strings.Join(wayNames(), ","), "what keeps the market correct")
	if code, ok := command.Parse(flags, args); !ok {
		return code
	}
	if err := s.read(*crowds, *names); err != nil {
		fmt.Fprintln(stderr, "market:", err)
		return command.Usage
	}
	return onServer(ctx, s, stdout, stderr)
}

func (s *settings) read(crowds, names string) error {
	if s.duration <= 0 {
		return errors.New("the duration of a row must be more than 0")
	}
	for text := range strings.SplitSeq(crowds, ",") {
		var c crowd
		if n, err := fmt.Sscanf(text, "%d/%d", &c.sellers, &c.buyers); n != 2 || err != nil || c.String() != text ||
			c.sellers < 1 || c.buyers < 1 || c.sellers+c.buyers > 1000 {
			return fmt.Errorf("%q is no sellers/buyers such as 5/1, at most 1000 in all", text)
		}
		s.crowds = append(s.crowds, c)
	}
	picked, err := host.Pick(names, wayNames()...)
	for _, name := range picked {
		s.ways = append(s.ways, wayOf(name))
	}
	return err
}

func onServer(ctx context.Context, s settings, stdout, stderr io.Writer) int {
	running, missing, err := host.Start(host.Redis)
	if err != nil {
		fmt.Fprintln(stderr, "market:", err)
		return command.Failed
	}
	defer running.Close()
	if missing != nil {
		fmt.Fprintln(stderr, "market:", missing)
		return command.Missing
	}
	if err := trade(ctx, running.Addrs[host.Redis], s, stdout); err != nil {
		fmt.Fprintln(stderr, "market:", err)
		return command.Failed
	}
	return 0
}

// trade runs all rows, prints them, and fails if money or items were lost or made.
func trade(ctx context.Context, addr string, s settings, w io.Writer) error {
	var rows []row
	for _, c := range s.crowds {
		for _, way := range s.ways {
			r, err := s.day(ctx, addr, way, c)
			if err != nil {
				return fmt.Errorf("%s, %v: %w", way.name, c, err)
			}
			rows = append(rows, r)
		}
	}
	report(w, s, rows)
	if s.svg == "" {
		return nil
	}
	return os.WriteFile(s.svg, draw(rows), 0o644)
}
