# The commands that build, check and run Hanse. `make` without a target prints the list of targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
TOOL := $(CURDIR)/hack/tool.sh
# The Go modules that contain code of Hanse. All other modules contain only the go.mod of a tool or of a component of
# the lab.
MODULES := . lab provider hack/image hack/release hack/crdcheck hack/monitoring
# Binaries, tools, tests and the control planes of the lab are compiled with the same flags, so that the build cache has
# each package once. Only the race detector needs others, among them cgo. Clones in other folders share the cache, too.
export GOFLAGS := -trimpath
export CGO_ENABLED := 0
RACE := CGO_ENABLED=1
# Without it, each process that is built with the race detector takes a second to end.
export GORACE := atexit_sleep_ms=0
# The times of all tests of a run go to a file below bin/tests, from which hack/slowest.sh prints the longest. Vet is
# off, because verify-lint runs its checks.
GOTESTSUM = $(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg \
	--junitfile $(CURDIR)/bin/tests/$(1).xml -- -vet=off
# The packages of this module, but for those that need a browser or a fleet.
PACKAGES = $$(go list ./... | grep -vE '/test/(browser|e2e|pods)$$')
# The packages whose tests contain a text.
PACKAGES_WITH = $$(git grep -l '$(1)' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's|^|./|')
# The images are IMAGE_REPOSITORY/NAME:VERSION. The charts use the tag appVersion, which has no "v".
CHART_VERSION = $(shell sed -n 's/^appVersion: //p' charts/hanse-hub/Chart.yaml)
IMAGE_REPOSITORY ?= ghcr.io/hanse-dev
IMAGE_PLATFORMS ?= linux/amd64,linux/arm64
IMAGE_SETTINGS = IMAGE_REPOSITORY='$(IMAGE_REPOSITORY)' IMAGE_PLATFORMS='$(IMAGE_PLATFORMS)' VERSION='$(VERSION)'
# Variables for tests and benchmarks on the lab; CONTRIBUTING.md explains them.
ON_LAB = HANSE_LAB=$(CURDIR)/bin/lab HANSE_BIN=$(CURDIR)/$(1) HANSE_HELM="$$($(TOOL) --path helm)"
IN_BROWSER = HANSE_BROWSER="$$(hack/browser.sh --path chromium)" HANSE_AXE="$$(hack/browser.sh --path axe)"
HUGO = $(TOOL) hugo --config hack/site/hugo.yaml --noBuildLock
# The default of VERSION is the output of git describe.
RELEASE = go run -C hack/release . $(1) -root $(CURDIR) -version $(VERSION) -registry $(IMAGE_REPOSITORY) \
	-helm "$$($(TOOL) --path helm)" $(if $(ALLOW_DIRTY),-allow-dirty)

# With a larger heap, the garbage collector of control planes and tests runs less often. The hub of the end-to-end tests
# keeps the value of the chart.
verify verify-% test test-%: export GOGC := 400

# say prints the name of a step. STEPS is a file for the times of all steps, which .ci/run reads.
define say
@printf '\033[1m==> %s\033[0m\n' "$(1)"$(if $(STEPS),; echo "$$EPOCHSECONDS $(1)" >>'$(STEPS)')
endef

##@ Start here

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: build lab ## Run a Prometheus on three regional clusters, from source; the clusters keep running
	hack/demo.sh

.PHONY: demo-down
demo-down: ## Stop the clusters of demo and remove their state
	hack/demo-down.sh

.PHONY: docs
docs: ## Serve the documentation with a search, at http://localhost:1313
	$(HUGO) server --bind 127.0.0.1

##@ Build

.PHONY: build
build: ## Build the commands into bin/
	$(call say,building the commands of cmd/ into bin/)
	@mkdir -p bin
	go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: build-race
build-race: ## Build the commands with the race detector into bin/race/
	$(call say,building the commands of cmd/ with the race detector into bin/race/)
	@mkdir -p bin/race
	$(RACE) go build -race -ldflags '-X main.version=$(VERSION)' -o bin/race/ ./cmd/...

.PHONY: lab
lab: bin/lab ## Build the lab and its control planes from source (about 10 minutes once, then reused)
	$(call say,building the control planes of the lab; a second run reuses them)
	bin/lab build

.PHONY: node-packages
node-packages: ## Install the packages that real nodes of the lab need, if this is Debian and you are root
	@hack/node-packages.sh

.PHONY: browser
browser: ## Get what the tests of the console's pages need: Chromium, if this is Debian and you are root, and axe-core by npm
	@hack/browser.sh

.PHONY: bin/lab
bin/lab:
	@go build -C lab -o $(CURDIR)/bin/lab .

.PHONY: images
images: ## Write the images of cmd/ and their SBOMs to bin/images/, without docker; VERSION=0.1.0 is the tag
	$(call say,building the images of cmd/ into bin/images/)
	@$(IMAGE_SETTINGS) LDFLAGS='$(LDFLAGS)' hack/images.sh

.PHONY: images-load
images-load: ## Import bin/images/ into the kind cluster KIND_CLUSTER, the containerd of this node, or docker
	$(call say,importing the images of bin/images/)
	@KIND_CLUSTER='$(KIND_CLUSTER)' hack/images-load.sh bin/images/*.tar

.PHONY: images-verify
images-verify: ## Check that two clones of the current commit give the same images
	$(call say,building the images from two clones)
	@$(IMAGE_SETTINGS) hack/images-verify.sh

.PHONY: site
site: ## Build the site of the documentation into bin/site, and check its links
	$(call say,building the site of docs/)
	@rm -rf bin/site
	$(HUGO)
	@go run ./hack/site bin/site

.PHONY: clean
clean: ## Remove bin/ and the built tools; the lab's control planes stay
	rm -rf bin .cache/tools

##@ Generate and verify

.PHONY: generate
generate: generate-api generate-charts generate-dashboards generate-fixtures generate-reference ## Regenerate everything that is generated

.PHONY: generate-api
generate-api: ## Generate deep copies and CRDs from api/
	$(TOOL) controller-gen object paths=./api/...
	hack/generate-crds.sh

.PHONY: generate-charts
generate-charts: ## Generate README.md and values.schema.json of each chart from its values.yaml
	hack/generate-charts.sh

.PHONY: generate-dashboards
generate-dashboards: ## Generate the dashboards of the chart hanse-hub from hack/monitoring
	go run -C hack/monitoring . $(CURDIR)/charts/hanse-hub/files/dashboards

.PHONY: generate-fixtures
generate-fixtures: ## Generate the expected manifests of the override tests, and the expected reports of bundles/crd
	go test ./overrides -update
	go test ./bundles/crd -run TestFixtures -update

.PHONY: generate-reference
generate-reference: ## Generate docs/api.md from the CRDs, docs/hansectl.md from the commands, and the table of docs/metrics.md
	go test ./test/docs -run 'TestThePageOf(TheAPI|Hansectl|Metrics)' -update

.PHONY: verify
verify: verify-generated verify-lint verify-charts verify-upgrade verify-docs verify-modules verify-workflows bundle-validate ## Everything that CI checks before it runs tests
	$(call say,verified)

.PHONY: verify-generated
verify-generated: generate ## Check that generated files are current and committed
	$(call say,checking that generated files are current)
	@hack/verify-generated.sh

.PHONY: verify-lint
verify-lint: ## Run golangci-lint, with the checks of go vet, on every module with code of Hanse
	$(call say,linting the modules)
	@for m in $(MODULES); do (set -x; cd $$m && $(TOOL) golangci-lint run ./...); done

.PHONY: verify-charts
verify-charts: ## Check that the charts pass helm lint, render, and refuse bad values
	$(call say,checking the charts)
	@hack/verify-charts.sh

.PHONY: verify-upgrade
verify-upgrade: ## Check that the CRDs accept the objects of the state in hack/upgrade-from
	$(call say,comparing the CRDs with those of an earlier state)
	@hack/verify-upgrade.sh

.PHONY: verify-docs
verify-docs: ## Check that the links in Markdown files work, and that lines are at most 120 columns wide
	$(call say,checking Markdown files)
	@go run ./hack/doccheck .

.PHONY: verify-modules
verify-modules: ## Check that go.mod and go.sum of every module are tidy and match the downloaded modules
	$(call say,checking the modules)
	@hack/verify-modules.sh

.PHONY: verify-workflows
verify-workflows: ## Check that the workflows of GitHub are valid and name actions by hash, and that dependabot updates every module
	$(call say,checking the workflows)
	@hack/verify-workflows.sh

.PHONY: bundle-validate
bundle-validate: ## Check that the OLM bundle of the charts is valid; writes it to bin/bundle
	$(call say,making and validating the OLM bundle)
	@go run -C hack/release . bundle -root $(CURDIR) -out $(CURDIR)/bin/bundle -version v0.0.0-dev -helm "$$($(TOOL) --path helm)"

.PHONY: vuln
vuln: ## Find known vulnerabilities that the code can reach (needs the network)
	$(TOOL) govulncheck ./...

##@ Test

.PHONY: test
test: ## Run all tests, each of them once, and print the slowest
	@rm -rf bin/tests
	@$(MAKE) test-envtest test-norace test-modules
	@$(MAKE) test-e2e E2E_PODS=1
	@hack/slowest.sh

.PHONY: test-unit
test-unit: SHORT := -short
test-unit: test-norace test-modules ## Run the tests that need only Go
	$(call say,unit tests)
	$(RACE) $(call GOTESTSUM,hanse) -race $(SHORT) $(PACKAGES)
	cd lab && $(RACE) $(call GOTESTSUM,lab) -race $(SHORT) ./...

.PHONY: test-envtest
test-envtest: lab node-packages ## Run the tests of test-unit and those that need a real API server, and the tests of the lab
	$(call say,tests with a real API server)
	assets="$$(bin/lab build --print-bin)"; KUBEBUILDER_ASSETS="$$assets" $(RACE) $(call GOTESTSUM,hanse) -race -timeout 25m -p 3 $(PACKAGES)
	cd lab && $(RACE) $(call GOTESTSUM,lab) -race ./...
	assets="$$(bin/lab build --print-bin)"; cd provider && KUBEBUILDER_ASSETS="$$assets" HANSE_HELM="$$($(TOOL) --path helm)" \
		$(RACE) $(call GOTESTSUM,provider) -race ./...

.PHONY: test-norace
test-norace: ## Run the tests of bounds and of operators' definitions, for which the race detector is too slow
	$(call say,tests without the race detector)
	$(call GOTESTSUM,norace) $(SHORT) $$(hack/norace-tests.sh)

.PHONY: test-modules
test-modules: ## Run the tests of the modules in hack, and those of the provider that need only Go
	$(call say,tests of the modules in hack and of the provider)
	cd hack/image && $(call GOTESTSUM,image) -count=1 ./... # they run files that Go's test cache does not see
	cd hack/release && HANSE_HELM="$$($(TOOL) --path helm)" $(call GOTESTSUM,release) ./...
	cd hack/crdcheck && $(call GOTESTSUM,crdcheck) ./...
	cd hack/monitoring && $(call GOTESTSUM,monitoring) -count=1 ./... # they run files that Go's test cache does not see
	cd provider && $(call GOTESTSUM,provider-go) ./...

.PHONY: test-e2e
test-e2e: lab build-race browser $(if $(E2E_PODS),ready-pods) ## Run the end-to-end tests, with a hub and regional clusters on the lab; E2E_RUN='TestA|TestB' selects some
	$(call say,end-to-end tests on the lab)
	$(if $(HANSE_LONG),bin/lab build prometheus)
	@$(IN_BROWSER) $(RACE) $(call GOTESTSUM,browser) -race -count=1 ./test/browser
	@$(call ON_LAB,bin/race) $(IN_BROWSER) exec hack/e2e.sh

.PHONY: test-pods
test-pods: ready-pods ## Test the charts as pods on real nodes: install, upgrade, roll back, drain, uninstall
	$(call say,tests of the charts on real nodes)
	@exec hack/pods.sh

.PHONY: ready-pods
ready-pods: build lab node-packages
	$(MAKE) images VERSION=$(CHART_VERSION) IMAGE_PLATFORMS=linux/$$(go env GOARCH)
	hack/older.sh
	$(if $(HANSE_LONG),bin/lab build cert-manager && bin/lab build jobset)

.PHONY: test-long
test-long: lab node-packages ## Run what takes too long for each change: long forms of tests, more random cases, new inputs of fuzz tests, public operators, alerts, chaos
	@rm -rf bin/tests
	$(call say,long forms of tests)
	assets="$$(bin/lab build --print-bin)"; export KUBEBUILDER_ASSETS="$$assets"; \
		HANSE_LONG=1 HANSE_HELM="$$($(TOOL) --path helm)" $(RACE) $(call GOTESTSUM,long) -race -timeout 60m \
		$(call PACKAGES_WITH,HANSE_LONG)
	$(call say,properties of many random cases)
	$(call GOTESTSUM,properties) -timeout 60m $(call PACKAGES_WITH,"pgregory.net/rapid") -rapid.checks=5000
	$(call say,fuzz tests)
	hack/fuzz.sh
	@$(MAKE) test-pods HANSE_LONG=1
	@$(MAKE) test-e2e HANSE_LONG=1 E2E_RUN='TestAlertsAndDashboards|TestRestartsDeleteNothing'
	@$(MAKE) test-chaos HANSE_CHAOS_SEED=$$(date +%s) HANSE_CHAOS_MINUTES=20 HANSE_CHAOS_REPLICAS=3
	@hack/slowest.sh

.PHONY: test-chaos
test-chaos: lab build ## Edit and disturb a fleet at random, and judge it: HANSE_CHAOS_SEED, HANSE_CHAOS_MINUTES, HANSE_CHAOS_REPLICAS
	$(call say,chaos on the lab)
	@$(call ON_LAB,bin) go test -count=1 -vet=off -timeout 120m -v -run TestChaos ./test/chaos

.PHONY: screenshots
screenshots: ## Take the pictures of docs/console.md from the console of a lab, into docs/images
	@mkdir -p docs/images
	$(MAKE) test-e2e E2E_RUN=TestScreenshots HANSE_SCREENSHOTS=$(CURDIR)/docs/images

.PHONY: bench
bench: build lab ## Measure throughput, latency, writes and memory against a raw client loop; ARGS="-profile wide" for flags
	$(call ON_LAB,bin) $(IN_BROWSER) go run ./test/bench $(ARGS)

.PHONY: bench-compare
bench-compare: ## Print the last run of bench beside the last recorded run of its size; ARGS="a.json b.json" compares other runs
	go run ./test/bench compare $(ARGS)

##@ Release

.PHONY: release-dry-run
release-dry-run: ## Make all files of a release that need no network, in bin/release: VERSION=vX.Y.Z; ALLOW_DIRTY=1 for a trial
	$(call say,making release $(VERSION) in bin/release)
	@$(call RELEASE,check)
	@$(MAKE) images VERSION=$(VERSION:v%=%)
	@$(call RELEASE,files)

.PHONY: verify-release
verify-release: ## Rehearse a release of the current commit: images-verify, and release-dry-run with the version of the charts
	$(MAKE) images-verify VERSION=$(CHART_VERSION) IMAGE_PLATFORMS=linux/$$(go env GOARCH)
	$(MAKE) release-dry-run VERSION=v$(CHART_VERSION)

.PHONY: release-push
release-push: ## Upload the images and charts of release-dry-run to IMAGE_REPOSITORY
	$(call say,uploading images and charts to $(IMAGE_REPOSITORY))
	@$(call RELEASE,push)

.PHONY: release-sign
release-sign: ## Sign the uploads of release-push, and the checksums, with cosign by the identity of the workflow
	$(call say,signing release $(VERSION))
	@$(call RELEASE,sign)

.PHONY: release-publish
release-publish: ## Publish the files of release-dry-run on GitHub with gh
	$(call say,publishing release $(VERSION))
	cd bin/release && gh release create $(VERSION) --verify-tag --title $(VERSION) --notes-file notes.md \
		$(if $(findstring -,$(VERSION)),--prerelease) $$(awk '{print $$2}' SHA256SUMS) SHA256SUMS SHA256SUMS.sigstore.json
