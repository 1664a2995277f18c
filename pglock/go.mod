module github.com/interlock-go/interlock/pglock

go 1.25.0

require (
	github.com/interlock-go/interlock v0.0.0
	github.com/interlock-go/interlock/enginekit/sqlsession v0.0.0
	github.com/jackc/pgx/v5 v5.12.0
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace github.com/interlock-go/interlock => ../

replace github.com/interlock-go/interlock/enginekit/sqlsession => ../enginekit/sqlsession
