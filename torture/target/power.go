package target

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

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
