// Stock sells the same few items from several processes at once, and shows which ways of deducting sell more than there
// is. Start it with
//
//	go run ./stock
//
// It starts a MariaDB, a PostgreSQL and a Redis of its own (what is not installed is left out, and it says what to
// install), and itself once more for each selling process. Each process deducts until it sees that nothing is left:
//
//   - without a lock: read the number, check it, write it less one. Two that read the same number
//     both sell the same item.
//   - under a lock of the language (sync.Mutex): right among the goroutines of one process. Another process has a mutex
//     of its own, so with several processes it is as wrong as none. This is why there are distributed locks.
//   - under an interlock lock: the same three steps, and right, also when the function that deducts takes the lock
//     again that its caller holds.
//   - by an atomic update: one statement, or script, checks and deducts. It needs no lock.
//
// The wrong ways go wrong each time, and not by luck: in the first round each process reads, and writes only when all
// that its way lets in at once have read. The ways that are right stand the same round, in which they let in one.
//
// At the end an administrator corrects the stock while others sell: by what has to be added, never by the new
// number, and never below zero.
//
// The program ends with 1 if a right way sells other than what was there, or a wrong way does not oversell, and with 69
// if none of the servers is installed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/interlock-go/interlock/examples/internal/command"
	"github.com/interlock-go/interlock/examples/internal/host"
	"github.com/interlock-go/interlock/examples/internal/part"
)

// size says how much is sold by how many.
type size struct {
	processes  int // of each way that has several
	goroutines int // in each process
	stock      int // at the beginning of each row
}

func main() {
	part.Play(map[string]func(context.Context, *part.Stage) error{sellerPart: sell})
	command.Main(run)
}

// run is the program. It returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := command.Flags("stock", stderr)
	var n size
	flags.IntVar(&n.processes, "processes", 4, "selling processes")
	flags.IntVar(&n.goroutines, "goroutines", 4, "goroutines in each")
	flags.IntVar(&n.stock, "stock", 400, "items that there are")
	names := flags.String("servers", "mariadb,postgres,redis", "where the stock is kept")
	if code, ok := command.Parse(flags, args); !ok {
		return code
	}
	picked, err := host.Pick(*names, host.MariaDB, host.Postgres, host.Redis)
	if err == nil {
		err = n.check()
	}
	if err != nil {
		fmt.Fprintln(stderr, "stock:", err)
		return command.Usage
	}
	return onServers(ctx, picked, n, stdout, stderr)
}

func (n size) check() error {
	if n.processes < 2 || n.processes > 64 || n.goroutines < 1 || n.goroutines > 64 ||
		n.stock < 1 || n.stock > 1_000_000 {
		return errors.New("there must be 2 to 64 processes, 1 to 64 goroutines and 1 to 1000000 items")
	}
	return nil
}

func onServers(ctx context.Context, names []string, n size, stdout, stderr io.Writer) int {
	running, missing, err := host.Start(names...)
	if err != nil {
		fmt.Fprintln(stderr, "stock:", err)
		return command.Failed
	}
	defer running.Close()
	if missing != nil {
		fmt.Fprintln(stderr, "stock: left out:", missing)
	}
	if len(running.Addrs) == 0 {
		return command.Missing
	}
	table := newTable(stdout, n)
	defer table.flush()
	for _, name := range names {
		addr, runs := running.Addrs[name]
		if !runs {
			continue
		}
		if err := table.fill(ctx, place{Server: name, Addr: addr}, n); err != nil {
			fmt.Fprintln(stderr, "stock:", err)
			return command.Failed
		}
	}
	if !table.fine() {
		return command.Failed
	}
	return 0
}
