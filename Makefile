# The five things one does here. Needs Go, a C compiler, and npm or pip.
.PHONY: build test check bench fuzz

build: ## the command, in ./miplc
	go build -o miplc ./cmd/miplc

test: ## all tests
	go test ./...

check: ## all checks, as on the build machine (MODE=quick: without the race detector)
	bash .ci/run $(MODE)

bench: ## speed of the training step in each engine (BENCH=regexp for others)
	go test -run '^$$' -bench '$(or $(BENCH),Step)' ./...

fuzz: ## every fuzz target in turn (FUZZTIME=5m: five minutes each)
	bash .ci/run fuzz
