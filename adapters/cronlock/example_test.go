package cronlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/cronlock"
	_ "github.com/interlock-go/interlock/memlock" // links the engine in that answers to mem:// URLs
)

func ExampleFunc() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://cron", nil) // or redis://..., the same on every host
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	nightly := func(context.Context) error {
		fmt.Println("on this host tonight")
		return nil
	}
	run := cronlock.Func(ctx, locks.Mutex("nightly", nil), nightly, func(ran bool, err error) {
		fmt.Println("ran:", ran, "error:", err)
	})
	run() // what the scheduler does: c.AddFunc("0 3 * * *", run)
	// Output:
	// on this host tonight
	// ran: true error: <nil>
}
