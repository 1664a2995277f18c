package gocronlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/gocronlock"
	_ "github.com/interlock-go/interlock/memlock" // links the engine in that answers to mem:// URLs
)

func ExampleNewLocker() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://gocron", nil) // or redis://..., the same on every host
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	done := make(chan struct{})
	// MinHold is longer than the clocks may differ.
	locker := gocronlock.NewLocker(locks, &interlock.LockOptions{MinHold: time.Minute})
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	_, err = scheduler.NewJob(
		gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), // or gocron.CronJob("0 3 * * *", false)
		gocron.NewTask(func() { fmt.Println("on this host tonight"); close(done) }),
		gocron.WithName("nightly"),
	)
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	<-done
	_ = scheduler.Shutdown()
	// Output: on this host tonight
}
