package httplock_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/httplock"
	_ "github.com/interlock-go/interlock/memlock" // links the engine in that answers to mem:// URLs
)

func ExampleMiddleware() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://http", nil) // or redis://..., the same for every server
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	serve := httplock.Middleware(func(r *http.Request) *interlock.Mutex {
		return locks.Mutex("order:"+r.PathValue("id"), nil)
	}, nil)
	mux := http.NewServeMux()
	mux.Handle("GET /orders/{id}", serve(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "nobody else serves this order")
	})))

	response := get(mux, ctx, "/orders/42")
	fmt.Print(response.StatusCode, " ")
	body, _ := io.ReadAll(response.Body) // of a recorder, which does not fail
	fmt.Print(string(body))

	lease, err := locks.Lock(ctx, "order:42") // another server has it
	if err != nil {
		log.Fatal(err)
	}
	response = get(mux, ctx, "/orders/42")
	fmt.Println(response.StatusCode, response.Header.Get("Retry-After"))
	_ = lease.Unlock(ctx)
	// Output:
	// 200 nobody else serves this order
	// 409 1
}
