# make demo    orders through two workers, one of them killed; then verified
# make test    all tests; installs Postgres and Chromium where they are missing (root, apt-get)
# make check   what a change must pass before it is handed in
# make soak    all tests, and what make test repeats a few times for luck as often as it
#              takes to find what is rare
# make bench   the figures of this machine, beside their floors
# make chaos   all faults at once for a while: QUIPU_CHAOS (2m), QUIPU_CHAOS_SEED
# make faults  every fault at every point, by real processes; prints the table: QUIPU_FAULTS='K7/F1 kill'
#              plays the cells whose names have that in them; QUIPU_FAULTS_OTHER=COMMIT is the
#              other build of F18, which by default is the oldest with the schema of today
# make sim     an hour of simulated worlds: DURING (1h), FROM (the first seed; others each time)
# make linear  what clients see under faults, checked for linearizability: QUIPU_LINEAR (10m), QUIPU_LINEAR_SEED
# make mutants a guard removed at a time: the simulator or a test has to notice; scripts/mutants NAME... for some
# make fuzz    every fuzz target for FUZZTIME (1m), one after another
# make differential  both stores side by side: QUIPU_DIFFERENTIAL sequences (100)
# make jaeger  the trace of a job in a real Jaeger, which is built once, in some minutes
#              chaos, faults, sim, linear, mutants, fuzz and differential say in a line at their
#              end what they counted
# make roles   the end-to-end tests, each process under a login with the least rights (S8)
# make build   the commands, into bin/
# make fmt     gofumpt on everything

.PHONY: demo test check soak bench chaos faults sim linear mutants fuzz differential jaeger roles build fmt postgres chromium

# One test binary may run this long; the slowest takes two minutes. All of make test takes
# 11 to 21 minutes on two cores where nothing is compiled yet, by the machine.
TIMEOUT ?= 8m
# Packages that are tested at the same time: more than there are cores, for those
# with servers and processes wait a lot.
PARALLEL ?= 3
# A program with the race detector sleeps a second before it ends; tests start hundreds.
export GORACE ?= atexit_sleep_ms=0
# The compiler collects garbage less often, which saves a sixth of its time: nothing is compiled yet
# in a fresh clone.
test check soak: export GOGC ?= 400
# Tests read no DWARF, and the compiler takes a sixth longer to write it. In GOFLAGS,
# so that the programs that tests build share what is compiled.
test check soak: export GOFLAGS += -gcflags=all=-dwarf=false
# Arguments of the demo and of the benchmark.
ARGS ?=

demo: postgres build
	@bin/demo $(ARGS)

# make check has the linters, too. Here they would take minutes where nothing is compiled yet:
# vet and staticcheck read every dependency, govulncheck all that they call, and gofumpt needs a
# standard library without the race detector. gofmt comes with Go.
test: postgres chromium
	scripts/format gofmt
	scripts/gotest -vet=off -race -shuffle=on -p $(PARALLEL) -timeout $(TIMEOUT) ./...

check: postgres chromium
	scripts/format gofumpt
	go vet ./...
	go vet -tags faults ./internal/fault ./tests/...
	go tool staticcheck ./...
	go mod tidy -diff
	scripts/vulnerabilities
	scripts/gotest -vet=off -race -shuffle=on -p $(PARALLEL) -timeout $(TIMEOUT) ./...

soak: postgres chromium
	QUIPU_SOAK=1 go test -race -shuffle=on -count=1 -timeout 0 ./...

jaeger: postgres
	QUIPU_JAEGER=$$(scripts/jaeger) go test -vet=off -count=1 -tags jaeger -timeout $(TIMEOUT) ./tests/trace -run Jaeger

bench: postgres build
	go build -o bin/bench ./tests/bench
	bin/bench $(ARGS)

chaos: postgres
	QUIPU_CHAOS=$${QUIPU_CHAOS:-2m} go test -tags faults ./tests/faults -run TestChaos -count=1 -timeout 0 -v

faults: postgres
	QUIPU_FAULTS='$(or $(QUIPU_FAULTS),all)' go test ./tests/faults -race -run TestFaultCells -count=1 -timeout 0 -v

DURING ?= 1h
FROM ?= $(shell date +%s)000

roles: postgres
	QUIPU_LEAST_ROLES=1 go test ./tests/e2e -race -count=1 -timeout $(TIMEOUT)

sim:
	go test ./internal/engine/sim -run TestSimulation -v -count=1 -timeout 0 -during $(DURING) -from $(FROM)

linear: postgres
	QUIPU_LINEAR=$${QUIPU_LINEAR:-10m} go test ./tests/linear -run TestI9Linearizable -v -count=1 -timeout 0

mutants: postgres
	scripts/mutants

FUZZTIME ?= 1m

fuzz:
	FUZZTIME=$(FUZZTIME) scripts/fuzz

QUIPU_DIFFERENTIAL ?= 100

differential: postgres
	QUIPU_DIFFERENTIAL=$(QUIPU_DIFFERENTIAL) go test ./tests/differential -run TestStoresAgree -v -count=1 -timeout 0

build:
	@mkdir -p bin
	@scripts/aloud 'Building the commands into bin/' go build -o bin/ ./cmd/... ./examples/saga/trips ./examples/tutorial/shop

fmt:
	go tool gofumpt -w .

postgres:
	@scripts/ensure-postgres >/dev/null

chromium:
	@scripts/ensure-chromium
