package gormlock_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/gormlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/locktx"
	"gorm.io/gorm"
)

// A sale that reads, decides and writes under a lock, which lasts until the COMMIT has been answered.
func ExampleLock() { //nolint:testableexamples // it needs a database
	var db *gorm.DB             // gorm.Open
	var locks *interlock.Client // interlock.Open
	if err := db.Use(gormlock.New()); err != nil {
		log.Fatal(err)
	}
	type item struct{ ID, Number int }
	guard := fence.NewSQLGuard(fence.MySQL, "fence") // if a holder may stand still for longer than its lease

	err := db.Transaction(func(tx *gorm.DB) error {
		lease, err := gormlock.Lock(tx, locks.Mutex("stock:42", nil))
		if err != nil {
			return err
		}
		stamp, held := lease.Stamp()
		if !held {
			return lease.Err()
		}
		in, err := gormlock.SQLTx(tx)
		if err != nil {
			return err
		}
		if err := guard.Check(tx.Statement.Context, in, "stock:42", stamp); err != nil {
			return err
		}
		var it item
		if err := tx.First(&it, 42).Error; err != nil {
			return err
		}
		if it.Number == 0 {
			return errors.New("sold out")
		}
		return tx.Model(&it).Update("number", it.Number-1).Error
	})
	if locktx.OutcomeOf(err) == locktx.Unknown {
		fmt.Println("look whether it was sold, after the lease:", err)
	}
}
