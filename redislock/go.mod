module github.com/interlock-go/interlock/redislock

go 1.25.0

require (
	github.com/interlock-go/interlock v0.0.0
	github.com/redis/rueidis v1.0.79
)

require golang.org/x/sys v0.47.0 // indirect

replace github.com/interlock-go/interlock => ../
