package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	_ "github.com/interlock-go/interlock/memlock" // answers to mem:// URLs
)

// A server that keeps what its clients lock in its own memory: a holder that was overtaken is refused.
func ExampleMemoryGuard() {
	var guard fence.MemoryGuard
	stock := 10
	take := func(s fence.Stamp) {
		err := guard.Do("stock:42", s, func() error { stock--; return nil })
		var stale *fence.StaleError
		if errors.As(err, &stale) {
			fmt.Println("refused:", stale.Seen, "was there")
			return
		}
		fmt.Println("left:", stock)
	}
	slow, quick := fence.Stamp{Token: 7, Nonce: "a"}, fence.Stamp{Token: 8, Nonce: "b"}
	take(slow)
	take(quick) // the lease of the slow one has ended
	take(slow)
	// Output:
	// left: 9
	// left: 8
	// refused: writer 8 (nonce b) was there
}

// Over HTTP the stamp travels in a header.
func ExampleMiddleware() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://fence", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	var guard fence.MemoryGuard
	byPath := func(r *http.Request) string { return r.URL.Path }
	server := httptest.NewServer(fence.Middleware(guard.Check, byPath)(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Println("written") })))
	defer server.Close()
	put := func(s fence.Stamp) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/stock/42", nil)
		if err != nil {
			log.Fatal(err)
		}
		fence.SetHeader(r.Header, s)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		answer.Body.Close()
		fmt.Println(answer.Status)
	}

	old, _ := locks.Lock(ctx, "stock:42")
	stamp, _ := old.Stamp()
	put(stamp)
	old.Unlock(ctx) // or its lease ends while its process stands still

	young, _ := locks.Lock(ctx, "stock:42")
	defer young.Unlock(ctx)
	newer, _ := young.Stamp()
	put(newer)
	put(stamp)
	// Output:
	// written
	// 200 OK
	// written
	// 200 OK
	// 412 Precondition Failed
}

// A client with this transport sends each request under its lease, and none when the lease has ended.
func ExampleTransport() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://transport", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	var guard fence.MemoryGuard
	byPath := func(r *http.Request) string { return r.URL.Path }
	server := httptest.NewServer(fence.Middleware(guard.Check, byPath)(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { fmt.Println("written") })))
	defer server.Close()

	lease, err := locks.Lock(ctx, "stock:42")
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &fence.Transport{Stamp: lease.Stamp}}
	put := func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/stock/42", nil)
		if err != nil {
			log.Fatal(err)
		}
		answer, err := client.Do(r)
		if errors.Is(err, fence.ErrEnded) {
			fmt.Println("not sent")
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		answer.Body.Close()
		fmt.Println(answer.Status)
	}
	put()
	lease.Unlock(ctx)
	put()
	// Output:
	// written
	// 200 OK
	// not sent
}

// In a SQL database the check is part of the transaction. Package locktx does this, and the lock, in one call.
func ExampleSQLGuard_Check() { //nolint:testableexamples // it needs a database
	ctx := context.Background()
	var db *sql.DB             // sql.Open
	var lease *interlock.Lease // locks.Lock
	guard := fence.NewSQLGuard(fence.PostgreSQL, "fence")
	if err := guard.CreateTable(ctx, db); err != nil { // once, when the program starts
		log.Fatal(err)
	}

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	stamp, held := lease.Stamp()
	if !held {
		log.Fatal(lease.Err())
	}
	if err := guard.Check(ctx, tx, "stock:42", stamp); err != nil { // before the first SELECT
		log.Fatal(err) // errors.Is(err, fence.ErrStale): another has it
	}
	if _, err := tx.ExecContext(ctx, "UPDATE stock SET number = number - 1 WHERE id = 42"); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
}

// A handler that reads the stamp itself, without Middleware.
func ExampleFromHeader() {
	var guard fence.MemoryGuard
	header := http.Header{} // of a request
	fence.SetHeader(header, fence.Stamp{Token: 7, Nonce: "a"})

	stamp, err := fence.FromHeader(header)
	if err != nil {
		log.Fatal(err) // the client's mistake: 400
	}
	fmt.Println(stamp.Token, guard.Check("stock:42", stamp))
	_, err = fence.FromHeader(http.Header{})
	fmt.Println("without a stamp:", errors.Is(err, fence.ErrNoStamp))
	// Output:
	// 7 <nil>
	// without a stamp: true
}
