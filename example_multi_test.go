package interlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/memlock"
)

func ExampleClient_Multi() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://bank", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	// Two transfers between the same accounts, in both directions, do not wait for each other: names are sorted.
	transfer := locks.Multi([]string{"account:7", "account:3"}, nil)
	err = transfer.Do(ctx, func(ctx context.Context) error { // cancelled when either of the two is lost
		interlock.AssertHeld(ctx, "account:3")
		interlock.AssertHeld(ctx, "account:7")
		fmt.Println("transferred")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: transferred
}
