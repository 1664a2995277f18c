module github.com/interlock-go/interlock/lab

go 1.26

replace github.com/interlock-go/interlock => ../

replace github.com/interlock-go/interlock/internal/browser => ../internal/browser

replace github.com/interlock-go/interlock/redislock => ../redislock

replace github.com/interlock-go/interlock/zklock => ../zklock

replace github.com/interlock-go/interlock/enginekit/sqlsession => ../enginekit/sqlsession

replace github.com/interlock-go/interlock/mysqllock => ../mysqllock

require (
	github.com/chromedp/chromedp v0.23.0
	github.com/go-sql-driver/mysql v1.10.1
	github.com/go-zookeeper/zk v1.0.4
	github.com/interlock-go/interlock v0.0.0
	github.com/interlock-go/interlock/internal/browser v0.0.0
	github.com/interlock-go/interlock/mysqllock v0.0.0
	github.com/interlock-go/interlock/redislock v0.0.0
	github.com/interlock-go/interlock/zklock v0.0.0
	github.com/redis/rueidis v1.0.79
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/chromedp/cdproto v0.159.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260623181947-01eb4420fa68 // indirect
	github.com/interlock-go/interlock/enginekit/sqlsession v0.0.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)
