package filelock_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/filelock" // also answers to file:// URLs
)

// Every process that opens the same folder shares its locks. The URL of the same engine is file:///the/folder.
func ExampleNew() {
	folder, err := os.MkdirTemp("", "locks") // in real life one such as /var/lib/app/locks
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	engine, err := filelock.New(folder, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()
	locks, err := interlock.New(engine, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(context.Background(), "nightly", func(context.Context) error {
		fmt.Println("nobody else is in here, on this machine")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: nobody else is in here, on this machine
}
