package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	_ "github.com/go-sql-driver/mysql" // registers mysql with database/sql
	"github.com/interlock-go/interlock/examples/internal/host"
	_ "github.com/jackc/pgx/v5/stdlib" // registers pgx with database/sql
	"github.com/redis/rueidis"
)

// item is what is sold.
const item = "apple"

// errTooFew says that a change would leave less than nothing.
var errTooFew = errors.New("there are too few")

// shelf is where the number of items stands.
type shelf interface {
	// fill begins anew with that number.
	fill(ctx context.Context, number int) error
	// read and write are the two steps that leave a gap between them.
	read(ctx context.Context) (int, error)
	write(ctx context.Context, number int) error
	// add changes the number by delta in one step, or returns errTooFew and changes nothing.
	add(ctx context.Context, delta int) error
	close()
}

// place says where a shelf is.
type place struct {
	Server, Addr string
}

func (p place) open() (shelf, error) {
	if p.Server == host.Redis {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{p.Addr}, DisableCache: true})
		return redisShelf{client}, err
	}
	driver, source := host.SQL(p.Server, p.Addr)
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	if p.Server == host.MariaDB {
		return sqlShelf{db, [3]string{"?", "?", "?"}}, nil
	}
	return sqlShelf{db, [3]string{"$1", "$2", "$3"}}, nil
}

// sqlShelf is a row of a table. arg are the dialect's placeholders.
type sqlShelf struct {
	db  *sql.DB
	arg [3]string
}

func (s sqlShelf) fill(ctx context.Context, number int) error {
	// The constraint is a net under everything else: not one of the ways below relies on it.
	_, err := s.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS stock "+
		"(id VARCHAR(64) PRIMARY KEY, number INT NOT NULL CHECK (number >= 0))")
	if err == nil {
		_, err = s.db.ExecContext(ctx, "DELETE FROM stock WHERE id = "+s.arg[0], item)
	}
	if err == nil {
		_, err = s.db.ExecContext(ctx,
			"INSERT INTO stock (id, number) VALUES ("+s.arg[0]+", "+s.arg[1]+")", item, number)
	}
	return err
}

func (s sqlShelf) read(ctx context.Context) (number int, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT number FROM stock WHERE id = "+s.arg[0], item).Scan(&number)
	return number, err
}

func (s sqlShelf) write(ctx context.Context, number int) error {
	_, err := s.db.ExecContext(ctx, "UPDATE stock SET number = "+s.arg[0]+" WHERE id = "+s.arg[1], number, item)
	return err
}

// add tells by the number of rows that were changed whether there were enough: the condition is about what will be
// left, since a condition like number >= 0 about what is there now lets the last sale go below zero.
func (s sqlShelf) add(ctx context.Context, delta int) error {
	result, err := s.db.ExecContext(ctx, "UPDATE stock SET number = number + "+s.arg[0]+
		" WHERE id = "+s.arg[1]+" AND number + "+s.arg[2]+" >= 0", delta, item, delta)
	if err != nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err == nil && rows == 0 {
		err = errTooFew
	}
	return err
}

func (s sqlShelf) close() { _ = s.db.Close() }

// redisShelf is a key that holds the number.
type redisShelf struct{ c rueidis.Client }

const redisKey = "stock:" + item

// addScript is atomic because Redis runs one script at a time.
// KEYS[1] the number, ARGV[1] what to add; returns 1, or 0 if too little would be left.
var addScript = rueidis.NewLuaScript(`
if tonumber(redis.call('GET', KEYS[1]) or 0) + ARGV[1] < 0 then return 0 end
redis.call('INCRBY', KEYS[1], ARGV[1])
return 1`)

func (s redisShelf) fill(ctx context.Context, number int) error { return s.write(ctx, number) }

func (s redisShelf) read(ctx context.Context) (int, error) {
	number, err := s.c.Do(ctx, s.c.B().Get().Key(redisKey).Build()).AsInt64()
	return int(number), err
}

func (s redisShelf) write(ctx context.Context, number int) error {
	return s.c.Do(ctx, s.c.B().Set().Key(redisKey).Value(fmt.Sprint(number)).Build()).Error()
}

func (s redisShelf) add(ctx context.Context, delta int) error {
	done, err := addScript.Exec(ctx, s.c, []string{redisKey}, []string{fmt.Sprint(delta)}).AsInt64()
	if err == nil && done == 0 {
		err = errTooFew
	}
	return err
}

func (s redisShelf) close() { s.c.Close() }
