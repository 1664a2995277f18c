module github.com/interlock-go/interlock/torture

go 1.25.0

require (
	github.com/interlock-go/interlock v0.0.0
	github.com/interlock-go/interlock/etcdlock v0.0.0
	github.com/interlock-go/interlock/mysqllock v0.0.0
	github.com/interlock-go/interlock/pglock v0.0.0
	github.com/interlock-go/interlock/redislock v0.0.0
	github.com/interlock-go/interlock/zklock v0.0.0
)

replace github.com/interlock-go/interlock => ../

replace github.com/interlock-go/interlock/redislock => ../redislock

replace github.com/interlock-go/interlock/zklock => ../zklock

replace github.com/interlock-go/interlock/etcdlock => ../etcdlock

replace github.com/interlock-go/interlock/mysqllock => ../mysqllock

replace github.com/interlock-go/interlock/pglock => ../pglock
