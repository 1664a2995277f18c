package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/memlock" // links in the engine of mem:// URLs
)

// The usual way: work inside the lock, with a context that ends when the lock is lost.
func ExampleClient_Do() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://do", nil) // or file:///var/lib/app/locks
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "stock:42", func(ctx context.Context) error {
		fmt.Println("nobody else is in here")
		return nil
	})
	switch {
	case errors.Is(err, interlock.ErrLost):
		fmt.Println("the lock was lost while we worked:", err)
	case err != nil:
		fmt.Println("failed:", err)
	}
	// Output: nobody else is in here
}

// Lock returns the lease. Only the lease can unlock the lock.
func ExampleClient_Lock() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://lock", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	waiting, cancel := context.WithTimeout(ctx, 5*time.Second) // bounds the waiting, nothing else
	defer cancel()
	lease, err := locks.Lock(waiting, "stock:42")
	if err != nil {
		log.Fatal(err)
	}
	work := lease.Context(ctx) // ends when the lock is lost; carries the owner
	stamp, held := lease.Stamp()
	fmt.Println("held:", held, "token:", stamp.Token > 0, "work may go on:", work.Err() == nil)
	if err := lease.Unlock(ctx); err != nil {
		fmt.Println("it had been lost:", err)
	}
	fmt.Println("the reason why the work ended:", context.Cause(work))
	// Output:
	// held: true token: true work may go on: true
	// the reason why the work ended: already released
}

// A try that fails says who holds the lock.
func ExampleClient_TryLock() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://try", &interlock.Options{ClientName: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.TryLock(ctx, "nightly")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)

	_, err = locks.TryLock(ctx, "nightly")
	var held *interlock.HeldError
	if errors.As(err, &held) {
		fmt.Printf("%s is held by %s\n", held.Name, held.Client)
	}
	// Output: nightly is held by web-1
}

// Skip the work if another owner is doing it.
func ExampleMutex_TryDo() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://trydo", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	job := locks.Mutex("cleanup", &interlock.LockOptions{Class: "job", MaxHold: time.Minute})
	ran, err := job.TryDo(ctx, func(ctx context.Context) error {
		again, err := locks.Mutex("cleanup", nil).TryDo(context.Background(), nil)
		fmt.Println("a second run:", again, err)
		return nil
	})
	fmt.Println("the first run:", ran, err)
	// Output:
	// a second run: false <nil>
	// the first run: true <nil>
}

// A function that locks may be called by one that holds the lock: the owner travels in the context.
func ExampleLease_Context() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://reentry", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	inner := func(ctx context.Context) error {
		return locks.Do(ctx, "account:7", func(context.Context) error {
			fmt.Println("inside, twice")
			return nil
		})
	}
	if err := locks.Do(ctx, "account:7", inner); err != nil {
		log.Fatal(err)
	}
	// Output: inside, twice
}

// A named owner may re-enter from another process, here played by a second client.
func ExampleWithOwner() {
	ctx := interlock.WithOwner(context.Background(), "order-2041")
	here, err := interlock.Open(ctx, "mem://owner", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer here.Close()
	there, err := interlock.Open(ctx, "mem://owner", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer there.Close()

	first, err := here.Lock(ctx, "account:7")
	if err != nil {
		log.Fatal(err)
	}
	second, err := there.Lock(ctx, "account:7")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("same acquisition:", first.Token() == second.Token())
	fmt.Println(errors.Join(first.Unlock(ctx), second.Unlock(ctx)))
	// Output:
	// same acquisition: true
	// <nil>
}

// An operator lists the locks below a prefix, with their holders and waiters.
func ExampleClient_List() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://list", &interlock.Options{ClientName: "web-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lease, err := locks.Lock(ctx, "shop/7")
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx)
	for info, err := range locks.List(ctx, "shop/") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(info.Kind, info.Name, info.Holders[0].Client, len(info.Waiters))
	}
	// Output: mutex shop/7 web-1 0
}

// A read that a write may follow takes the upgradeable read: no other owner writes in between.
func ExampleLease_Upgrade() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://upgrade", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	catalogue := locks.RWMutex("catalogue", nil)

	reader, err := catalogue.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := catalogue.UpgradeableRLock(ctx) // beside the reader
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("read, and found out of date")
	_ = reader.Unlock(ctx) // Upgrade would wait for it
	if err := lease.Upgrade(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("written, and still what was read")
	if err := lease.Downgrade(ctx); err != nil { // lets readers in
		log.Fatal(err)
	}
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// read, and found out of date
	// written, and still what was read
	// <nil>
}

// At most eight conversions at a time, over all machines; a big one counts for four.
func ExampleSemaphore_Acquire() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://semaphore", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	conversions := locks.Semaphore("conversions", 8, nil)

	big, err := conversions.Acquire(ctx, 4)
	if err != nil {
		log.Fatal(err)
	}
	_, err = conversions.TryAcquire(ctx, 5)
	fmt.Println("five more are too many:", errors.Is(err, interlock.ErrHeld))
	fmt.Println(big.Unlock(ctx)) // all four
	// Output:
	// five more are too many: true
	// <nil>
}
