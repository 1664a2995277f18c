module github.com/interlock-go/interlock/redislock/goredislock

go 1.25.0

require (
	github.com/interlock-go/interlock v0.0.0
	github.com/interlock-go/interlock/redislock v0.0.0
	github.com/redis/go-redis/v9 v9.19.0
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/interlock-go/interlock => ../../

replace github.com/interlock-go/interlock/redislock => ../
