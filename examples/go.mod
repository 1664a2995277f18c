module github.com/interlock-go/interlock/examples

go 1.25.0

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/interlock-go/interlock v0.0.0
	github.com/interlock-go/interlock/mysqllock v0.0.0
	github.com/interlock-go/interlock/pglock v0.0.0
	github.com/interlock-go/interlock/redislock v0.0.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/redis/rueidis v1.0.79
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace github.com/interlock-go/interlock => ../

replace github.com/interlock-go/interlock/redislock => ../redislock

replace github.com/interlock-go/interlock/mysqllock => ../mysqllock

replace github.com/interlock-go/interlock/pglock => ../pglock
