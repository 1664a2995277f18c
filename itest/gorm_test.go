package itest

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/gormlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/locktx"
	gormmysql "gorm.io/driver/mysql"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// user is a row without a unique name.
type user struct {
	ID   int
	Name string
}

// gorm opens GORM on the given address, with the plugin and a table of users.
func (d *database) gorm(t testing.TB, addr string, prepared bool) *gorm.DB {
	t.Helper()
	pool := d.open(t, addr)
	dialector := gormpostgres.New(gormpostgres.Config{Conn: pool})
	if d == mariaDB {
		dialector = gormmysql.New(gormmysql.Config{Conn: pool})
	}
	db, err := gorm.Open(dialector, &gorm.Config{PrepareStmt: prepared, Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormlock.New()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Migrator().DropTable(&user{}), db.AutoMigrate(&user{})); err != nil {
		t.Fatal(err)
	}
	return db
}

// registerByGORM creates the user ann unless it is there.
func registerByGORM(tx *gorm.DB) error {
	var n int64
	if err := tx.Model(&user{}).Where("name = ?", "ann").Count(&n).Error; err != nil || n > 0 {
		return err
	}
	return tx.Create(&user{Name: "ann"}).Error
}

func TestGORM_DuplicateInsert_DoesNotHappen(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		for name, prepared := range map[string]bool{"usual": false, "prepared": true} {
			t.Run(name, func(t *testing.T) {
				waiting := make(chan struct{}, 1)
				db, locks := d.gorm(t, d.addr(t), prepared), openLocks(t, nil)
				other := openLocks(t,
					&interlock.Observer{Waiting: func(context.Context, interlock.Event) { waiting <- struct{}{} }})
				second := make(chan error, 1)
				first := db.Transaction(func(tx *gorm.DB) error {
					if _, err := gormlock.Lock(tx, locks.Mutex("user:ann", nil)); err != nil {
						return err
					}
					// In a nested transaction, which is a savepoint: its end releases nothing.
					if err := tx.Transaction(registerByGORM); err != nil {
						return err
					}
					go func() { // ends after the first
						second <- db.Transaction(func(tx *gorm.DB) error {
							if _, err := gormlock.Lock(tx, other.Mutex("user:ann", nil)); err != nil {
								return err
							}
							return registerByGORM(tx)
						}, readCommitted)
					}()
					<-waiting
					return nil
				}, readCommitted)
				if err := errors.Join(first, <-second); err != nil {
					t.Fatal(err)
				}
				var n int64
				if err := db.Model(&user{}).Count(&n).Error; err != nil || n != 1 {
					t.Errorf("%d rows, %v, want one", n, err)
				}
			})
		}
	})
}

func TestGORM_WhoseConnectionBreaksAtTheCommit_DoesNotKnow_AndTheLockIsNotReleased(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		proxy, locks, other := servers.NewProxy(t, d.addr(t)), openLocks(t, nil), openLocks(t, nil)
		db := d.gorm(t, proxy.Addr(), false)
		told := locktx.Outcome(0)
		inserted, said := make(chan struct{}), make(chan error, 1)
		go func() { // ends with the connection
			said <- db.Transaction(func(tx *gorm.DB) error {
				if _, err := gormlock.Lock(tx, locks.Mutex("user:ann", nil)); err != nil {
					return err
				}
				err := errors.Join(registerByGORM(tx), gormlock.OnCompletion(tx, func(o locktx.Outcome) { told = o }))
				proxy.DropReplies()
				close(inserted)
				return err
			})
		}()
		<-inserted
		direct := d.connect(t)
		await(t, "the COMMIT to arrive", func() bool { return d.number(t, direct, "SELECT COUNT(*) FROM users") == 1 })
		proxy.Reset()
		if err := <-said; locktx.OutcomeOf(err) != locktx.Unknown || told != locktx.Unknown {
			t.Errorf("got %v, told %v", err, told)
		}
		if _, err := other.TryLock(t.Context(), "user:ann"); !errors.Is(err, interlock.ErrHeld) {
			t.Errorf("the lock was released: %v", err)
		}
	})
}

func TestGORM_WithAGuard_IsRefusedOnceANewerHolderWasThere(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		db, locks := d.gorm(t, d.addr(t), false), openLocks(t, nil)
		g := d.guard(t, d.connect(t))
		buy := func(s fence.Stamp) error {
			return db.Transaction(func(tx *gorm.DB) error {
				in, err := gormlock.SQLTx(tx)
				if err != nil {
					return err
				}
				if err := g.Check(t.Context(), in, "user:ann", s); err != nil {
					return err
				}
				return registerByGORM(tx)
			})
		}
		lease, err := locks.Lock(t.Context(), "user:ann")
		if err != nil {
			t.Fatal(err)
		}
		s, _ := lease.Stamp()
		if err := buy(s); err != nil {
			t.Error(err)
		}
		if err := buy(fence.Stamp{Token: 1, Nonce: "older"}); !errors.Is(err, fence.ErrStale) {
			t.Errorf("got %v", err)
		}
	})
}
