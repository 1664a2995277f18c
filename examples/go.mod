module github.com/interlock-go/interlock/examples

go 1.25.0

require (
	github.com/go-sql-driver/mysql v1.10.1
	github.com/interlock-go/interlock v0.0.0
	github.com/interlock-go/interlock/mysqllock v0.0.0
	github.com/interlock-go/interlock/pglock v0.0.0
	github.com/interlock-go/interlock/redislock v0.0.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/nats-io/nats-server/v2 v2.12.6
	github.com/nats-io/nats.go v1.50.0
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/interlock-go/interlock/enginekit/sqlsession v0.0.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.1 // indirect
	github.com/prometheus/common v0.55.0 // indirect
	github.com/prometheus/procfs v0.15.1 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/metric v1.40.0 // indirect
	google.golang.org/protobuf v1.34.2 // indirect
)

require (
	filippo.io/edwards25519 v1.2.0 // indirect
	github.com/antithesishq/antithesis-sdk-go v0.6.0-default-no-op // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/interlock-go/interlock/adapters/otellock v0.0.0
	github.com/interlock-go/interlock/adapters/promlock v0.0.0
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/klauspost/compress v1.18.5 // indirect
	github.com/minio/highwayhash v1.0.4-0.20251030100505-070ab1a87a76 // indirect
	github.com/nats-io/jwt/v2 v2.8.1 // indirect
	github.com/nats-io/nkeys v0.4.15 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/prometheus/client_golang v1.20.5
	go.opentelemetry.io/otel v1.40.0
	go.opentelemetry.io/otel/sdk v1.40.0
	go.opentelemetry.io/otel/trace v1.40.0
	golang.org/x/crypto v0.49.0 // indirect
	golang.org/x/sync v0.22.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.15.0 // indirect
)

replace github.com/interlock-go/interlock => ../

replace github.com/interlock-go/interlock/redislock => ../redislock

replace github.com/interlock-go/interlock/enginekit/sqlsession => ../enginekit/sqlsession

replace github.com/interlock-go/interlock/mysqllock => ../mysqllock

replace github.com/interlock-go/interlock/pglock => ../pglock

replace github.com/interlock-go/interlock/adapters/promlock => ../adapters/promlock

replace github.com/interlock-go/interlock/adapters/otellock => ../adapters/otellock
