# Everything runs from a fresh Debian machine with Go, as root (the local tenant
# cluster makes network namespaces and cgroups).
#
#   make demo    run a real job on a local tenant cluster
#   make test    all tests, those on the real cluster included
#
# The first run compiles Kubernetes, which takes some minutes; it is cached.

GO         ?= go
# For every program that is called here: builds with other flags share nothing.
export GOFLAGS += -trimpath
# The Go release of go.mod, whichever is installed: a release comes out byte for
# byte the same only by the same compiler, and the standard library is in it too.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)
# The programs are static, as docs/installation.md says: they run in any image. All
# is compiled that way, so that nothing is compiled twice; the race detector alone
# needs C.
export CGO_ENABLED = 0
# Pinned tools, fetched through the Go module proxy.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

LOCALTENANT = examples/localtenant
# Waits while somebody else installs.
APT         = sh $(LOCALTENANT)/deps/apt.sh
DASHBOARD   = examples/grafana
MODULES     = . $(LOCALTENANT) $(DASHBOARD)

.DEFAULT_GOAL := build
.PHONY: build agent deps demo test lint compiler shells browser people unit fuzz real e2e job-log bench update release release-check vulnerabilities clean

# The driver, the job runner and the local tenant cluster, in bin/.
build: agent
	$(GO) build -o bin/ ./cmd/tenant-executor ./examples/localrunner
	$(GO) build -C $(LOCALTENANT) -o ../../bin/localtenant .

# The program that runs in the Pods, for both architectures. The driver embeds it.
AGENT = kube/stream/carry/dist/podagent-linux
agent:
	@for arch in amd64 arm64; do \
	GOOS=linux GOARCH=$$arch $(GO) build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o bin/podagent-$$arch ./cmd/podagent && \
	packed=bin/podagent-$$arch.$$$$.gz; gzip -9nc bin/podagent-$$arch >$$packed && \
	{ cmp -s $$packed $(AGENT)-$$arch.gz || cp $$packed $(AGENT)-$$arch.gz; } && \
	rm $$packed || exit 1; done

# What the local tenant cluster needs of Debian, and Kubernetes itself.
deps: build
	bin/localtenant deps --install
	bin/localtenant build

demo: deps
	examples/demo/run.sh

# The end-to-end tests mostly wait for nodes; meanwhile the local tenant itself is
# tested, and then the release is built and tried. Their output comes behind.
test: lint unit fuzz deps
	@mkdir -p bin; { $(MAKE) real && nice $(MAKE) vulnerabilities release-check; } >bin/beside.log 2>&1 & beside=$$!; \
	$(MAKE) e2e; code=$$?; lines=60; \
	wait $$beside || { echo "the local tenant or the release:"; code=1 lines=+1; }; tail -n $$lines bin/beside.log; exit $$code

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
	@command -v $${CC:-gcc} >/dev/null || { $(APT) update -q && $(APT) install -qy --no-install-recommends gcc libc6-dev; }

# The shells that images have; the agent's tests run scripts in each.
shells:
	@for shell in bash dash busybox; do command -v $$shell >/dev/null || { $(APT) update -q && $(APT) install -qy --no-install-recommends bash dash busybox; } || exit 1; done

# A browser for the page of statistics. Without one its test is skipped.
browser:
	@command -v chromium >/dev/null || { $(APT) update -q && $(APT) install -qy --no-install-recommends chromium; } || echo "no chromium: the page of statistics is not opened"

# What people have at hand who follow the documents; the end-to-end tests do.
people:
	@for need in kubectl:kubernetes-client jq:jq; do command -v $${need%:*} >/dev/null || \
	{ $(APT) update -q && $(APT) install -qy --no-install-recommends $${need#*:}; } || exit 1; done

unit: agent compiler shells browser
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...
	$(GO) test -count 1 -run 'Thousand|Memory' ./cmd/tenant-executor
	CGO_ENABLED=1 $(GO) test -C $(LOCALTENANT) -race ./...
	$(GO) test -C $(DASHBOARD) ./...

# A short while for each fuzz target: the frames and records of the agent, both
# sides of which read what the network brings; whole connections as the driver
# follows them; what a line of ours is made of; and the job as GitLab sends it.
# FUZZTIME=10m for a long one.
FUZZTIME = 10s
FUZZ_PACKAGES = ./kube/stream/agent ./kube/stream ./executor/job ./executor/joblog
fuzz:
	@for package in $(FUZZ_PACKAGES); do \
	for target in $$($(GO) test -list '^Fuzz' $$package | grep ^Fuzz); do \
	$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; done; done

# The local tenant cluster by itself.
real: deps
	$(GO) test -C $(LOCALTENANT) -tags localtenant -count 1 -timeout 20m -run Real .

# On the real local cluster.
e2e: deps people
	$(GO) test -c -tags e2e -o bin/e2e.test ./examples/e2e
	cd examples/e2e && ./run.sh $(CURDIR)/bin/e2e.test

# Writes the logs of docs/job-log.md again, from jobs on the real local cluster.
JOB_LOG = TestSecondJobWhileTheFirstNodeBoots|TestThirdJobWaitsAtTheCeiling|TestMissingImageIsABuildFailureOnce|TestOutOfMemoryIsTold|TestNodeDiesSilently|TestCancelEndsTheScriptAndKeepsThePod|TestConnectionLossCostsNothing
job-log: deps
	$(GO) test -c -tags e2e -o bin/e2e.test ./examples/e2e
	cd examples/e2e && TESTBED_PROGRAMS=$(CURDIR)/bin ../../bin/e2e.test -test.run '^($(JOB_LOG))$$' -update

# Figures of the README, on the real local cluster.
bench: deps
	$(GO) run ./examples/bench

# A release: static programs that anybody can build again byte for byte, a Debian
# package for each architecture, the software bill of materials, the licences of
# what is in the programs, and checksums of it all. The version is the tag, the
# time that of the commit.
NFPM       = github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
CYCLONEDX  = github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
RELEASE    = bin/release
release: agent
	rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	@export SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct); set -e; \
	for arch in amd64 arm64; do program=$(RELEASE)/tenant-executor-linux-$$arch; \
	GOOS=linux GOARCH=$$arch $(GO) build -trimpath -buildvcs=true -ldflags "-s -w -buildid=" -o $$program ./cmd/tenant-executor; \
	$(GO) run $(CYCLONEDX) bin -json -noserial -notimestamp -output $$program.cdx.json $$program; done; \
	$(GO) run ./examples/release licences $(RELEASE)/tenant-executor-linux-amd64 >$(RELEASE)/licences.txt; \
	{ cat LICENSE; echo; cat $(RELEASE)/licences.txt; } >$(RELEASE)/copyright; \
	sed s,/usr/local/bin/,/usr/bin/, examples/tenant-executor-warm.service >$(RELEASE)/tenant-executor-warm.service; \
	for arch in amd64 arm64; do \
	ARCH=$$arch VERSION=$$(git describe --tags --match 'v*' 2>/dev/null || echo v0.0.0-$$(git log -1 --format=%cd-%h --date=format:%Y%m%d%H%M%S)) \
	$(GO) run $(NFPM) package --packager deb --config examples/release/nfpm.yaml --target $(RELEASE)/; done
	cd $(RELEASE) && rm copyright tenant-executor-warm.service && sha256sum * >SHA256SUMS && cat SHA256SUMS

# Builds the release again, compares it, installs the package and removes it.
release-check: release
	examples/release/check.sh

# The known vulnerabilities of what the programs call. The data comes as a module,
# too; a newer one is a newer version here.
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB      = golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018
vulnerabilities: agent
	@mkdir -p bin && dir=$$(cd bin && $(GO) mod download -json $(VULNDB) | sed -n 's/.*"Dir": "\(.*\)".*/\1/p') && \
	test -d bin/vulndb-$(lastword $(subst -, ,$(VULNDB))) || \
	{ rm -rf bin/vulndb-* && $(GO) run $(subst @,/cmd/indexdb@,$(VULNDB)) -vulns $$dir/data/osv -out bin/vulndb.new && \
	mv bin/vulndb.new bin/vulndb-$(lastword $(subst -, ,$(VULNDB))); }
	$(GO) run $(GOVULNCHECK) -db file://$(CURDIR)/bin/vulndb-$(lastword $(subst -, ,$(VULNDB))) -format json ./cmd/... >bin/vulnerabilities.json
	$(GO) run ./examples/release vulnerabilities bin/vulnerabilities.json

# Writes generated files again: examples/config.toml, examples/rbac*.yaml, golden files.
update:
	$(GO) test ./executor/settings ./executor/pod ./executor/inherit ./executor/failure ./kube -update
	UPDATE_REFERENCE=1 $(GO) test ./cmd/tenant-executor -run TestCommandReference

clean:
	-bin/localtenant down --all
	rm -rf bin
