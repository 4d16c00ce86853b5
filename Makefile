# Everything runs from a fresh Debian machine with Go, as root (the local tenant
# cluster makes network namespaces and cgroups).
#
#   make demo    run a real job on a local tenant cluster
#   make test    all tests, those on the real cluster included
#
# The first run compiles Kubernetes, which takes some minutes; it is cached.

GO         ?= go
GOFLAGS    += -trimpath
# Pinned tools, fetched through the Go module proxy.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

LOCALTENANT = examples/localtenant
MODULES     = . $(LOCALTENANT)

.DEFAULT_GOAL := build
.PHONY: build agent deps demo test lint compiler unit fuzz e2e bench update clean

# The driver, the job runner and the local tenant cluster, in bin/.
build: agent
	$(GO) build -o bin/ ./cmd/tenant-executor ./examples/localrunner
	$(GO) build -C $(LOCALTENANT) -o ../../bin/localtenant .

# The program that runs in the Pods, for both architectures. The driver embeds it.
AGENT = kube/stream/carry/dist/podagent-linux
agent:
	@for arch in amd64 arm64; do \
	CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o bin/podagent-$$arch ./cmd/podagent && \
	gzip -9nc bin/podagent-$$arch >bin/podagent.gz && \
	{ cmp -s bin/podagent.gz $(AGENT)-$$arch.gz || cp bin/podagent.gz $(AGENT)-$$arch.gz; } && \
	rm bin/podagent.gz || exit 1; done

# What the local tenant cluster needs of Debian, and Kubernetes itself.
deps: build
	bin/localtenant deps --install
	bin/localtenant build

demo: deps
	examples/demo/run.sh

test: lint unit fuzz e2e

lint: agent
	@unformatted=$$(gofmt -l cmd executor stages kube examples); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	@for module in $(MODULES); do echo "vet and staticcheck: $$module"; \
	(cd $$module && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...) || exit 1; done
	$(GO) vet -tags e2e ./examples/e2e/...
	$(GO) run $(STATICCHECK) -tags e2e ./examples/e2e/...
	cd $(LOCALTENANT) && $(GO) vet -tags localtenant ./... && $(GO) run $(STATICCHECK) -tags localtenant .

# The race detector needs a C compiler.
compiler:
	@command -v $${CC:-gcc} >/dev/null || { apt-get update -q && apt-get install -qy --no-install-recommends gcc libc6-dev; }

unit: agent compiler
	$(GO) test -race ./...
	$(GO) test -count 1 -run 'Thousand|Memory' ./cmd/tenant-executor
	$(GO) test -C $(LOCALTENANT) -race ./...

# A short while for each fuzz target: the frames and records of the agent, both
# sides of which read what the network brings, and the job as GitLab sends it.
# FUZZTIME=10m for a long one.
FUZZTIME = 10s
FUZZ_PACKAGES = ./kube/stream/agent ./executor/job
fuzz:
	@for package in $(FUZZ_PACKAGES); do \
	for target in $$($(GO) test -list '^Fuzz' $$package | grep ^Fuzz); do \
	$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; done; done

# On the real local cluster.
e2e: deps
	$(GO) test -C $(LOCALTENANT) -tags localtenant -count 1 -timeout 20m -run Real .
	$(GO) test -tags e2e -count 1 -timeout 40m -v ./examples/e2e

# Figures of the README, on the real local cluster.
bench: deps
	$(GO) run ./examples/bench

# Writes generated files again: examples/config.toml, examples/rbac*.yaml, golden files.
update:
	$(GO) test ./executor/settings ./executor/pod ./executor/inherit ./kube -update
	UPDATE_REFERENCE=1 $(GO) test ./cmd/tenant-executor -run TestCommandReference

clean:
	-bin/localtenant down --all
	rm -rf bin
