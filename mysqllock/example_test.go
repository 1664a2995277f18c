package mysqllock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/mysqllock" // also answers to mysql:// URLs
)

// The usual way: the URL says where the database is.
func Example() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "mysql://user:password@localhost:3306/app", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "stock:42", func(context.Context) error {
		fmt.Println("nobody else is in here, on no machine")
		return nil
	})
	switch {
	case errors.Is(err, interlock.ErrLost):
		fmt.Println("the lock was lost while we worked:", err)
	case err != nil:
		fmt.Println("failed:", err)
	}
}

// With a configuration of the MySQL driver. The engine opens connections of its own with it.
func ExampleNew() { //nolint:testableexamples // it needs a server
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", "localhost:3306"
	config.User, config.Passwd, config.DBName = "app", "secret", "app"
	engine, err := mysqllock.New(context.Background(), config, &mysqllock.Options{
		Timeout: 15 * time.Second,
		Check:   mysqllock.CheckRefuse, // a server that is not set up for locks is an error
		Logger:  slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	locks, err := interlock.New(engine, &interlock.Options{Lease: 15 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
