package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock"
)

// Work whose outcome is unknown keeps its lock until the lease has run out. Here a payment got no answer, and may still
// be booked. An Unlock would let the next owner pay a second time.
func ExampleLease_Abandon() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://abandon", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	pay := func(context.Context) error { return context.DeadlineExceeded } // a bank that does not answer

	invoice := locks.Mutex("invoice:7", &interlock.LockOptions{Lease: 2 * time.Second}) // longer than a payment takes
	lease, err := invoice.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := pay(lease.Context(ctx)); errors.Is(err, context.DeadlineExceeded) {
		err = lease.Abandon()
		fmt.Println("left to run out:", err == nil)
	}

	_, err = invoice.TryLock(ctx)
	fmt.Println("held for the rest of the lease:", errors.Is(err, interlock.ErrHeld))
	next, err := invoice.Lock(ctx) // waits for the end of the lease; then look first whether the payment was booked
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next.Unlock(ctx))
	// Output:
	// left to run out: true
	// held for the rest of the lease: true
	// <nil>
}

// While a step is under way that nobody can stop, the client does not give the lock back by itself. Here MaxHold ends
// during a COMMIT: the lock runs out with its lease, and no other owner gets in meanwhile.
func ExampleLease_Pending() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://pending", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	ledger := locks.Mutex("ledger", &interlock.LockOptions{MaxHold: 300 * time.Millisecond})
	lease, err := ledger.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	over, err := lease.Pending()
	if err != nil {
		log.Fatal(err) // the hold has ended: begin nothing
	}
	<-lease.Lost() // in real life the COMMIT, which takes longer than MaxHold
	_, err = ledger.TryLock(ctx)
	fmt.Println("no other owner gets in:", errors.Is(err, interlock.ErrHeld))
	fmt.Println("Unlock reports the loss:", errors.Is(lease.Unlock(ctx), interlock.ErrLost))
	over() // after Unlock or Abandon
	// Output:
	// no other owner gets in: true
	// Unlock reports the loss: true
}
