# What a developer runs. `make` alone lists the targets; whatever takes more than a few lines lives in scripts/.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# make test runs what most changes can break. Tests of tools, of the harness and of packages beside the core wait for make test-all, which runs
# all that make test leaves out; together, every test once. What compiles a large dependency for its own sake (Prometheus, Protocol Buffers, zstd,
# drivers) is among those. make race runs all but EXAMPLES with the race detector.
MODULES := $(patsubst %,./%/...,$(shell scripts/modules))
ALL := $(MODULES:././...=./...)
EXAMPLES := ./examples/... ./examples/plugins/... ./bench/...
CONSENSUS := ./internal/testing/rungs/... ./cdc/mysql/... ./cdc/outbox/... ./consensus/etcd/... ./consensus/mysql/... ./consensus/postgres/... ./consensus/zookeeper/...
tested = $(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(1))
LIBRARY = $(shell echo '$(call tested,./cacheguard ./mutex ./middleware ./rwlock ./semaphore ./cacheguard/cacheguardtest ./cas ./memory ./... ./middleware/...)' | tr ' ' '\n' | grep -vE '/internal/(docscheck|licences|testing/.*)$$|/go/(metrics|cdc|consensus)(/.*)?$$')
OTHERS = $(filter-out $(LIBRARY),$(call tested,$(ALL)))
BENCHED = $(shell grep -rlE '^func Benchmark' --include='*_test.go' --exclude-dir=.tools . | xargs -n 1 dirname | sort -u)
RACED = $(filter-out $(call tested,$(EXAMPLES)),$(call tested,$(ALL)))
# The chaos begins beside two suites of locks, which wait for leases most of the time; feeds, which compute, follow.
LONGEST = $(call tested,./proof/chaos ./consensus/etcd ./consensus/zookeeper ./cdc/mysql ./cdc/outbox ./cdc/postgres ./consensus/mysql ./consensus/postgres ./internal/testing/rungs)
REDIS := redis-server redis-sentinel redis-cli
SERVERS := postgres etcd mariadbd mariadb-install-db zookeeper java pgbouncer
# Without inlining and DWARF, compiling takes half of the time, and that is most of it; the standard library is inlined, because it runs
# most. The flags are in the environment, for tests that run the go command, too. make lint vets, and once is enough. Most tests wait, so
# two processors run 64 at once, and with the race detector six. nomsgpack: gin, in an example, does without MessagePack. GOGC saves a quarter of the
# compiler's time and most of the tests' garbage collection, whose heap GOMEMLIMIT bounds.
RACE :=
TAGS := nomsgpack
comma := ,
LEAN := '-gcflags=all=-l -dwarf=false' -gcflags=std=
# SQLite, translated from C, is five times slower with the race detector, which has nothing to find in it.
UNRACED := '-gcflags=modernc.org/...=-race=false -l -dwarf=false'
FLAGS = GOGC=400 GOFLAGS="$$GOFLAGS $(RACE) $(LEAN) $(if $(RACE),$(UNRACED)) -ldflags=-w -tags=$(TAGS)"
TESTED := GOGC=400 GOMEMLIMIT=700MiB
SCHEDULED = -shuffle=on -parallel=$(if $(RACE),6,64) -timeout=$(if $(THOROUGH),30m,10m)
TEST_ARGS = -exec='env $(TESTED)' -vet=off $(SCHEDULED)
begin = @mkdir -p .tools; export $(FLAGS); \
	echo "Compiling $(words $(1)) test programs and their dependencies. An empty build cache takes minutes; then it is a minute."; \
	go build -o .tools/summary ./internal/testing/summary &&
# test PACKAGES [ARGS] runs the tests of the packages, and says on a screen what came of it.
test = $(begin) { go test -json $(TEST_ARGS) $(2) $(1) || echo '{"Action":"broken"}'; } | .tools/summary
# Without -race, with which it would take minutes: that is for the seeds of proof/sim's tests.
SIM := go run ./proof/cmd/sim -seeds 1000
ENT := examples/transactions/ent/db/client.go
COUNT ?= 1
BENCHTIME ?= 1s
FUZZTIME ?= 20s
CHAOS ?= 5m
ENGINES ?= 20

LINTER := .tools/golangci-lint
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
export GOLANGCI_LINT_CACHE := $(CURDIR)/.tools/lint-cache

.PHONY: help need coverage test test-all test-consensus test-examples race race-rest busy floors lint licences vulncheck reproducible api-check bench counts compare-smoke conformance compat examples docs model sim exact engines fuzz chaos drill tidy-check clone-check release-check ci

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

need: ## install what the targets need and this machine lacks; each target does so for itself
	@scripts/need $(REDIS) $(SERVERS) promtool nutcracker spin cc git chromium node npm

# go test links its programs each time it runs them, for 20 s of processor time. They stay here, and only those are linked whose code has changed.
PROGRAMS = $(CURDIR)/.tools/tests$(RACE)
RUN = cd $$0 && exec env $(TESTED) CACHEGUARD_TEST_PROGRAM=$(PROGRAMS)/cacheguard.test "$$converter" -t -p $$1 $(PROGRAMS)/$$(basename $$1).test -test.v=test2json $(patsubst -%,-test.%,$(SCHEDULED))

test: ## run the tests of the library, in a minute, the first time in some, for compiling; installs Redis where it is missing. RACE=-race adds the race detector
	@scripts/need $(REDIS) $(if $(RACE),cc) $(if $(findstring twemproxy,$(TAGS)),nutcracker)
	$(call begin,$(LIBRARY)) { converter=$$(go tool -n test2json) && go test -c -vet=off -o $(PROGRAMS)/ $(LIBRARY) && export converter && \
	go list -f '{{.Dir}} {{.ImportPath}}' $(LIBRARY) | xargs -P 4 -L 1 sh -c '$(RUN)' || echo '{"Action":"broken"}'; } | .tools/summary

test-all: ## run the tests that make test leaves out: cdc, consensus, metrics, otel, commands, examples, bench, tools; installs their servers where they are missing
	@scripts/need $(REDIS) $(SERVERS) promtool nutcracker cc git
	$(call test,$(OTHERS),-p=2)
	$(FLAGS) go test $(TEST_ARGS) -tags=nomsgpack,twemproxy -run=Twemproxy ./cacheguard

test-consensus: ## run those on etcd, ZooKeeper, PostgreSQL and MySQL alone; installs them and a JRE where they are missing
	@scripts/need $(REDIS) $(SERVERS) cc
	$(call test,$(call tested,$(CONSENSUS)),-p=2)

race race-rest: RACE := -race
race race-rest: TAGS := nomsgpack,twemproxy
race: ## run all tests but those of examples and bench with the race detector; COUNT=3 finds what one run misses
	@scripts/need $(REDIS) $(SERVERS) nutcracker cc git
	$(call test,$(RACED),-p=2 -count=$(COUNT))

race-rest: ## run those of them that make test leaves out
	@scripts/need $(REDIS) $(SERVERS) nutcracker cc git
	$(call test,$(LONGEST) $(filter-out $(LONGEST) $(LIBRARY),$(RACED)),-p=3)

busy: ## run tests as on a busy machine: all, for hours, or some as BUSY has it (scripts/busy); BUSY="-changed -for 45" as in .ci/run
	@scripts/need $(REDIS) $(SERVERS) nutcracker cc git
	@export $(FLAGS); scripts/busy $(BUSY) $(RACED)

test-examples: LEAN :=
test-examples: $(ENT) ## run the tests of examples and bench, and those that the race detector would falsify: with make race, every test
	@scripts/need $(REDIS) $(SERVERS) promtool git
	$(call test,$(call tested,$(EXAMPLES)),-p=2 -tags=$(TAGS)$(comma)generated)
	go test -vet=off ./proof/sim/exact
	go test -vet=off -run=AHitOfACacheCosts ./cacheguard

lint: $(LINTER) ## check the format, golangci-lint (which vets, too), and actionlint for the workflows
	@scripts/gofmt-check
	GOGC=400 GOMEMLIMIT=4GiB $(LINTER) run --allow-parallel-runners $(ALL)
	go run $(ACTIONLINT) -shellcheck= -pyflakes=

floors: ## build what others require with the lowest Go and go-redis that go.mod names, and test the promises with them; the other targets use the newest
	@scripts/need $(REDIS)
	@export $(FLAGS); scripts/floors

licences: ## list the licence of every module that a program gets with a published one, and fail if one is not allowed
	go run ./internal/licences

vulncheck: ## look for known vulnerabilities in what the modules call
	go run $(GOVULNCHECK) $(ALL)

api-check: ## fail when what is exported broke since the last tags, and CHANGELOG.md does not say so
	@scripts/api-check

reproducible: ## build cacheguardctl in two folders, and compare the bytes
	scripts/reproducible

bench: ## run every benchmark; BENCHTIME=1x runs each once, and shortens what lasts for a time
	@scripts/need $(REDIS) postgres mariadbd mariadb-install-db
	go test -vet=off -run='^$$' -bench=. -benchmem -benchtime=$(BENCHTIME) $(if $(filter 1x,$(BENCHTIME)),-short) -timeout=30m $(BENCHED)

counts: ## see that no allocations or commands were added, as make test-examples does
	@scripts/need $(REDIS)
	go test -vet=off -run=Counts -timeout=5m ./bench

compare-smoke: ## see that the comparison with other libraries works, in less than a minute
	@scripts/need $(REDIS)
	go run ./bench/cmd/compare -smoke -out .tools/compare
	go run ./bench/cmd/compare -smoke -scale -out .tools/scale

conformance: ## run the public test suite for HTTP caches, and write docs/conformance.md; CACHE_TESTS names a checkout of it
	@scripts/conformance -required 159 -optimal 97 -default-required 158 -default-optimal 90 -out docs/conformance.md

compat: ## run the promises, the local tier and the locks on Redis, Valkey and their kin, as far as they can be had, and write docs/compatibility.md; takes some minutes
	@scripts/compat

examples: ## run every example, briefly, and one page in Chromium
	@scripts/examples

docs: ## check snippets, links, package comments and stray machine paths
	@scripts/need git
	go run ./internal/docscheck

sim: ## run a thousand seeds of the simulated fleet; go run ./proof/cmd/sim -h has more
	$(SIM)

exact: ## the same, ten times as slowly, so that a seed which breaks a promise does so each time; go run ./proof/cmd/exact -seed 7 shows one
	go run ./proof/cmd/exact -seeds 1000

engines: ## compare package memory with a Redis call by call: ENGINES=20 times 160,000 random calls, of new seeds each time; before, the tests of all promises on it
	@scripts/need $(REDIS)
	PROMISES=all THOROUGH=1 go test -vet=off -run=PromisesHold -timeout=1h ./memory
	THOROUGH=1 go test -vet=off -run=EachCall -count=$(ENGINES) -timeout=4h ./memory

model: ## search all runs of the models of the protocols with SPIN, and see that no rule of them can be left out; MODEL=large searches larger bounds, for some minutes
	@scripts/need spin cc
	go run ./proof/cmd/model

fuzz: ## run every fuzz test of the library for FUZZTIME, or those that FUZZ names, and list the time of each
	@scripts/need $(REDIS)
	@FUZZTIME=$(FUZZTIME) scripts/fuzz

coverage: ## measure how much of the core the tests execute, and write the table into docs/design/bench.md; takes a quarter of an hour, and is no part of .ci/run
	@scripts/need $(REDIS) spin cc git
	@scripts/coverage -write

chaos: ## disturb processes and their Redis for CHAOS (5m, six kinds of harm in turn), and check that no promise was broken; make test-all does so for seconds
	@scripts/need $(REDIS)
	CHAOS=$(CHAOS) nice go test -count=1 -v -parallel=1 -timeout=24h -run=. ./proof/chaos

drill: ## make one of the troubles of docs/at-3am.md on a fleet of three, and leave you DRILL (5m) to find and answer which
	@scripts/need $(REDIS) $(POSTGRES)
	@DRILL=$${DRILL:-5m} go test -count=1 -v -timeout=2h -run='^TestDrill$$' ./examples/troubles

tidy-check: ## check that go.mod, go.sum and go.work agree with the code
	@scripts/tidy-check

clone-check: ## check that building a fresh clone of the last commit changes no file
	@scripts/need git
	@scripts/clone-check

release-check: ## make a release of every module in a temporary clone of the last commit, and use them as a stranger does
	@scripts/release-check

ci: ## run what the continuous integration runs
	@.ci/run

$(ENT): examples/transactions/ent/schema/schema.go
	go generate -tags=generated ./$(@D:/db=)
	@touch $@

$(LINTER): tools/go.mod tools/go.sum
	GOWORK=off go -C tools build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@
