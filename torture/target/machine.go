package target

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// diskSize is for how many megabytes a disk that can be full has room: etcd alone wants 64 of them for
// what it may write later.
const diskSize = 192

// fill leaves no room on the disk for a while, in which others, if not nil, write to it and are refused, again
// and again. A server that ends because of that is started again when there is room, as an operator would;
// there is none if s is nil.
func fill(disk *servers.Disk, s Reviver, others func(ctx context.Context)) Inject {
	return func(ctx context.Context, _ *rand.Rand, lasts time.Duration) error {
		err := disk.Fill()
		full, cancel := context.WithTimeout(ctx, lasts)
		defer cancel()
		for full.Err() == nil {
			if others != nil {
				others(full)
			}
			enginekit.Pause(full, 100*time.Millisecond)
		}
		if err = errors.Join(err, disk.Free()); s != nil {
			s.Revive()
		}
		return err
	}
}

// runs does what it can of some SQL.
func runs(driver, address string, statements ...string) func(ctx context.Context) {
	return func(ctx context.Context) {
		_ = onDatabase(driver, address, func(db *sql.DB) error {
			for _, statement := range statements {
				_, _ = db.ExecContext(ctx, statement) // that it fails is the point
			}
			return nil
		})
	}
}

// Reviver is a server that can be started again if it has ended.
type Reviver interface{ Revive() }

// fillMemory has a Redis refuse for a while whatever needs memory.
func fillMemory(s *servers.RedisNode) Inject {
	return func(ctx context.Context, _ *rand.Rand, lasts time.Duration) error {
		set := func(bytes string) error {
			_, err := s.Do(context.WithoutCancel(ctx), "CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory",
				bytes)
			return err
		}
		if err := set("1"); err != nil {
			return err
		}
		enginekit.Pause(ctx, lasts)
		return set("0")
	}
}

// policies are those by which a Redis that is full throws something away.
var policies = []string{
	"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-ttl", "volatile-random",
}

// deck gives each of some once before it gives any of them again. It is safe for concurrent use, as two
// faults may be done at once.
type deck struct {
	of []string

	mu   sync.Mutex // guards left
	left []string
}

func (d *deck) draw(dice *rand.Rand) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.left) == 0 {
		d.left = slices.Clone(d.of)
	}
	i := dice.IntN(len(d.left))
	drawn := d.left[i]
	d.left = slices.Delete(d.left, i, i+1)
	return drawn
}

// evict has a Redis take hardly more memory than it has just now, and throw away what its policy chooses for what
// others write. Each policy has its turn before one comes again.
func evict(s *servers.RedisNode) Inject {
	next := &deck{of: policies}
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		rest := context.WithoutCancel(ctx)
		policy := next.draw(dice)
		info, err := s.Info(rest, "memory")
		if err != nil {
			return err
		}
		used, err := strconv.Atoi(info["used_memory"])
		if err != nil {
			return err
		}
		most := strconv.Itoa(used + 10*len(junk))
		if _, err := s.Do(rest, "CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", most); err != nil {
			return err
		}
		for i, end := 0, time.Now().Add(lasts); time.Now().Before(end) && ctx.Err() == nil; i++ {
			if _, err = s.Do(rest, "SET", "junk-"+strconv.Itoa(i), junk, "PX", "5000"); isRefusal(err) {
				err = nil // there was nothing that the policy lets it throw away
			} else if err != nil {
				break
			}
			enginekit.Pause(ctx, 5*time.Millisecond)
		}
		_, healed := s.Do(rest, "CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")
		return errors.Join(err, healed)
	}
}

// junk is what others write.
var junk = strings.Repeat("x", 64<<10)

func isRefusal(err error) bool {
	var refusal servers.RedisError
	return errors.As(err, &refusal)
}

// writeAhead has a PostgreSQL begin another file of its log, for which it needs room; without,
// it ends all its processes.
func writeAhead(url string) func(ctx context.Context) {
	return runs("pgx", url, "SELECT pg_switch_wal()")
}

// storeJunk has a MariaDB keep more and more.
func storeJunk(dsn string) func(ctx context.Context) {
	return runs("mysql", dsn, "CREATE TABLE IF NOT EXISTS junk (x LONGTEXT) ENGINE=InnoDB",
		"INSERT INTO junk VALUES (REPEAT('x', 300000))", "INSERT INTO junk VALUES (REPEAT('x', 10000))")
}

// eachSecond has a Redis keep what it was told, but for the last second or two.
var eachSecond = map[string]string{"appendonly": "yes", "appendfsync": "everysec"}

// cutPower ends a Redis and takes from its append-only file what it has written there within the last second: with
// appendfsync everysec the disk need not have had that yet, so a machine that loses its power comes back without it.
func cutPower(s *servers.RedisNode) Inject {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		return loseWhatComes(ctx, s, lasts/8, func() {
			enginekit.Pause(ctx, time.Duration(dice.Int64N(int64(time.Second))))
		})
	}
}

// loseWhatComes ends a Redis and takes from its append-only file what it writes there meanwhile. It is down for a
// while.
func loseWhatComes(ctx context.Context, s *servers.RedisNode, down time.Duration, meanwhile func()) error {
	file, kept, err := appended(s.Dir)
	if err != nil {
		return err
	}
	meanwhile()
	s.Kill()
	err = os.Truncate(file, kept)
	enginekit.Pause(ctx, down)
	s.Restart()
	return err
}

// appended is the file to which a Redis appends, and its size.
func appended(dir string) (file string, size int64, err error) {
	// the second is that of versions before 7.0
	for _, pattern := range []string{"appendonlydir/*.incr.aof", "appendonly.aof"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", 0, err
		}
		if len(found) == 1 {
			about, err := os.Stat(found[0])
			if err != nil {
				return "", 0, err
			}
			return found[0], about.Size(), nil
		}
	}
	return "", 0, fmt.Errorf("there is no append-only file in %s", dir)
}
