package certlock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/certlock"
	_ "github.com/interlock-go/interlock/memlock" // links the engine in that answers to mem:// URLs
)

func ExampleLocker() {
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mem://certificates", nil) // or redis://..., the same for all servers
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	locker := certlock.New(locks, "")
	if err := locker.Lock(ctx, "issue_cert_example.com"); err != nil { // CertMagic does this
		log.Fatal(err)
	}
	free, err := locker.TryLock(ctx, "issue_cert_example.com")
	fmt.Println("free meanwhile:", free, err)
	fmt.Println("unlocked:", locker.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// free meanwhile: false <nil>
	// unlocked: <nil>
}
