# Every target is a line of shell or a script of scripts/, so all of it can be run without make.
# Variables: ENGINE= (conformance), T= PKG= N= TIME= (stress, fuzz), SEED= (faults, torture), ROW= (simulate), VERSION= OFFLINE= (release), BENCHTIME= COUNT= (bench-check), TABLES= (bench), SOURCE= (site),
# ARGS= (more for go test).

SHELL := /bin/sh
.DEFAULT_GOAL := help

export INTERLOCK_REQUIRE
LINTER := bin/golangci-lint
BENCHTIME ?= 1x
COUNT ?= 1
N ?= 200
T ?= .
PKG ?= .
TIME ?= 10s

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  more         print the others, which are parts of these or for rare use'

.PHONY: more
more:
	@awk -F ':.*#~ ' '/^[a-z-]+:.*#~ / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: gen
gen: matrix golden ## rewrite what is generated: docs/evidence/engines.md and the golden files; review the difference

.PHONY: ci
ci: ## run all that CI runs
	bash .ci/run

.PHONY: setup
setup: #~ install what the tests need (Debian, Ubuntu), or say what is missing
	@scripts/setup.sh

.PHONY: check
check: ## test what needs no server and no race detector, from the cache; after each change
	scripts/test.sh check $(ARGS)

.PHONY: test
test: setup ## test every module with real servers under the race detector; the first thing to run
	scripts/test.sh all $(ARGS)

.PHONY: test-beside
test-beside: setup #~ make test, every sweep in full size (INTERLOCK_LONG), but for the packages of make test-long
	scripts/test.sh beside $(ARGS)

.PHONY: test-long
test-long: setup #~ make test of the packages that judge real time, in full size, one after the other
	scripts/test.sh long $(ARGS)

.PHONY: long
long: setup #~ test etcdlock and pglock on the installed servers and on newer ones, which it builds or fetches: etcd 3.6, PostgreSQL 18
	scripts/long.sh $(ARGS)

.PHONY: race
race: #~ make test without setup, uncached and in random order
	scripts/test.sh all -count=1 -shuffle=on $(ARGS)

.PHONY: conformance
conformance: #~ run the conformance suite; ENGINE=memlock for one engine
	scripts/conformance.sh "$(ENGINE)" $(ARGS)

.PHONY: matrix
matrix: #~ run the conformance suite on every engine and rewrite docs/evidence/engines.md
	scripts/matrix.sh docs/evidence/engines.md

.PHONY: matrix-check
matrix-check: #~ fail when docs/evidence/engines.md is not what the conformance run says
	scripts/matrix.sh check

.PHONY: model
model: #~ search the exhaustive model of the hand-off at its widest bounds (a minute)
	go test ./internal/handoff -count=1 -v -run 'Sound' -args -wide

.PHONY: build
build: #~ build bin/interlock, with every engine
	go build -tags full -o bin/interlock ./cmd/interlock

.PHONY: tools
tools: build #~ build the command and the programs that it starts (interlock bench) into bin/
	scripts/programs.sh

.PHONY: lab
lab: #~ run every experiment of the lab, write lab.html and open it in a browser without a window
	cd lab && go run ./cmd/interlock-lab --all --lang en --report ../lab.html
	cd lab && go test -count=1 -run '^TestMadePage' ./internal/report -page "$(CURDIR)/lab.html"

.PHONY: faults
faults: #~ put every engine under faults and judge what happened (three to four minutes); SEED= repeats a run's shape
	go run ./torture/cmd/interlock-torture t1 -seed $(or $(SEED),0)

.PHONY: torture
torture: #~ put every engine under each fault, as root, and write docs/evidence/guarantees.md: an hour; SEED= repeats it
	go run ./torture/cmd/interlock-torture t2 -each 10s -seed $(or $(SEED),1) -beside 9 -increments 100000 -o docs/evidence/guarantees.md

.PHONY: simulate
simulate: #~ simulate with many seeds and search all states of the models, without servers (some 20 seconds); ROW= other seeds
	go run ./torture/cmd/interlock-torture t0 -row $(or $(ROW),1)

.PHONY: mutants
mutants: #~ put known bugs into copies of interlock, see which check notices, and write torture/mutants.md (some minutes)
	go run ./torture/cmd/interlock-torture mutants -o torture/mutants.md

.PHONY: release
release: setup #~ make a version in dist/ and prove it, without publishing: VERSION=v0.1.0; OFFLINE=1 does not ask for vulnerabilities
	cd tools && GOWORK=off go run ./release -from .. -to ../dist $(if $(OFFLINE),-offline) $(VERSION)

.PHONY: isolate
isolate: #~ show that each engine brings only its own dependencies (testdata/deps)
	scripts/isolate.sh

.PHONY: alone
alone: #~ build and vet every module outside of the workspace
	scripts/alone.sh

.PHONY: bench
bench: ## measure everything and write all tables (an hour and a half); TABLES="redis growth" for some
	scripts/measure.sh $(TABLES)

.PHONY: bench-check
bench-check: #~ run every benchmark for a moment, so that none can rot; BENCHTIME=, COUNT=
	scripts/bench.sh -benchtime=$(BENCHTIME) -count=$(COUNT) $(ARGS)

.PHONY: lint
lint: $(LINTER) ## run the linters
	@scripts/setup.sh lint
	LINTER=$(LINTER) scripts/lint.sh run

.PHONY: fmt
fmt: $(LINTER) ## format the Go code
	LINTER=$(LINTER) scripts/lint.sh fmt

.PHONY: tidy
tidy: #~ tidy go.mod and go.sum of every module
	scripts/tidy.sh

.PHONY: tidy-check
tidy-check: #~ fail when make tidy would change something
	scripts/tidy.sh check

.PHONY: docs-check
docs-check: #~ check links, quoted code, pages in Chinese, questions of readers, and that each page is found
	go run ./internal/docscheck .

.PHONY: site
site: lab #~ render the documents and the lab into bin/site, to be opened from there; SOURCE=URL for links to source files
	rm -rf bin/site
	go run ./internal/docsite -to bin/site -source "$(SOURCE)"

.PHONY: golden
golden: #~ rewrite the golden files; review the difference
	scripts/golden.sh

.PHONY: fuzz
fuzz: #~ fuzz every target for TIME=10s; T=FuzzName for one
	scripts/fuzz.sh $(TIME) "$(T)"

.PHONY: stress
stress: #~ repeat tests N=200 times until one fails; PKG=./memlock T=TestName
	scripts/stress.sh $(N) $(PKG) "$(T)"

# The linter has its own module, so that its requirements reach nobody; building it takes about two minutes, once.
$(LINTER): tools/go.mod tools/go.sum
	@mkdir -p bin
	cd tools && GOWORK=off go build -buildvcs=false -o ../$(LINTER) \
		github.com/golangci/golangci-lint/v2/cmd/golangci-lint
