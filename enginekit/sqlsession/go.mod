module github.com/interlock-go/interlock/enginekit/sqlsession

go 1.25.0

require github.com/interlock-go/interlock v0.0.0

replace github.com/interlock-go/interlock => ../../
