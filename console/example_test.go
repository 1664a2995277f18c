package console_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/console/board"
	_ "github.com/interlock-go/interlock/memlock"
)

// userOf is the program's own login.
func userOf(*http.Request) string { return "ann" }

func Example() {
	ctx := context.Background()
	client, err := interlock.Open(ctx, "mem://orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	mux := http.NewServeMux()

	// docs: mount
	page, err := console.New(client, &console.Options{
		Hosts: []string{"ops.example.com"},
		Who:   userOf, // your own login, for the audit
	})
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()
	mux.Handle("/locks/", http.StripPrefix("/locks", page))
	// docs: end

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://ops.example.com/locks/", http.NoBody))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

// A program that shows locks in its own way reads boards.
func Example_board() {
	ctx := context.Background()
	client, err := interlock.Open(ctx, "mem://orders", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lease, err := client.Lock(ctx, "order:42")
	if err != nil {
		log.Fatal(err)
	}

	poller := board.NewPoller(client, nil)
	defer poller.Close()
	reader := poller.Reader(0)
	defer reader.Close()
	var has *board.Board
	for range reader.Changed() { // ends with poller.Close; this example with the end of the hold
		update, ok := reader.Next()
		if !ok {
			continue
		}
		if update.Board != nil {
			has = update.Board
		} else {
			has = update.Change.Apply(has)
		}
		for _, l := range has.Locks {
			fmt.Println(l.Kind, l.Name, "is held by", len(l.Holders))
		}
		break
	}
	if err := lease.Unlock(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: mutex order:42 is held by 1
}
