package resourcelock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/resourcelock"
	_ "github.com/interlock-go/interlock/memlock" // links the engine in that answers to mem:// URLs
	"k8s.io/client-go/tools/leaderelection"
)

func Example() {
	locks, err := interlock.Open(context.Background(), "mem://controllers", nil) // or redis://..., the same everywhere
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	lock, err := resourcelock.New(locks, "my-controller", "host-1_6f1c")
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := lock.Context(context.Background()) // ends the moment the lead is lost
	defer cancel()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				stamp, ok := lock.Stamp() // for what the controller writes, see package fence
				fmt.Println("leads:", ok, stamp.Token > 0)
				cancel()
			},
			OnStoppedLeading: func() { fmt.Println("leads no more") },
		},
	})
	// Output:
	// leads: true true
	// leads no more
}
