module github.com/interlock-go/interlock/bench

go 1.26.0

require (
	github.com/bsm/redislock v0.9.4
	github.com/go-redsync/redsync/v4 v4.18.0
	github.com/interlock-go/interlock v0.0.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/redis/rueidis v1.0.79
	golang.org/x/sys v0.49.0
)

require github.com/redis/rueidis/rueidiscompat v1.0.78 // indirect

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/interlock-go/interlock/redislock v0.0.0
	go.uber.org/atomic v1.12.0 // indirect
)

replace github.com/interlock-go/interlock => ../

replace github.com/interlock-go/interlock/redislock => ../redislock
