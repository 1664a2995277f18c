module github.com/interlock-go/interlock/mysqllock

go 1.25.0

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/interlock-go/interlock v0.0.0
	github.com/interlock-go/interlock/enginekit/sqlsession v0.0.0
)

require filippo.io/edwards25519 v1.2.0 // indirect

replace github.com/interlock-go/interlock => ../

replace github.com/interlock-go/interlock/enginekit/sqlsession => ../enginekit/sqlsession
