# The commands that build, check and run Hanse. `make` without a target prints the list of targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
TOOL := hack/tool.sh
# The Go modules that contain code of Hanse. All other modules contain only the go.mod of a tool or of a component of
# the lab.
MODULES := . lab hack/image hack/release hack/crdcheck hack/monitoring
GOTESTSUM := $(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg
# The images are IMAGE_REPOSITORY/NAME:VERSION. The charts use the tag appVersion, which has no "v".
CHART_VERSION = $(shell sed -n 's/^appVersion: //p' charts/hanse-hub/Chart.yaml)
IMAGE_REPOSITORY ?= ghcr.io/hanse-dev
IMAGE_PLATFORMS ?= linux/amd64,linux/arm64
IMAGE_SETTINGS = IMAGE_REPOSITORY='$(IMAGE_REPOSITORY)' IMAGE_PLATFORMS='$(IMAGE_PLATFORMS)' VERSION='$(VERSION)'
# Variables for tests and benchmarks on the lab; CONTRIBUTING.md explains them.
ON_LAB = HANSE_LAB=$(CURDIR)/bin/lab HANSE_BIN=$(CURDIR)/$(1) HANSE_HELM="$$($(TOOL) --path helm)"
IN_BROWSER = HANSE_BROWSER="$$(hack/browser.sh --path chromium)" HANSE_AXE="$$(hack/browser.sh --path axe)"
# The default of VERSION is the output of git describe.
RELEASE = go run -C hack/release . $(1) -root $(CURDIR) -version $(VERSION) -registry $(IMAGE_REPOSITORY) \
	-helm "$$($(TOOL) --path helm)" $(if $(ALLOW_DIRTY),-allow-dirty)

define say
@printf '\033[1m==> %s\033[0m\n' "$(1)"
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

##@ Build

.PHONY: build
build: ## Build the commands into bin/
	$(call say,building the commands of cmd/ into bin/)
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: build-race
build-race: ## Build the commands with the race detector into bin/race/
	$(call say,building the commands of cmd/ with the race detector into bin/race/)
	@mkdir -p bin/race
	go build -race -ldflags '-X main.version=$(VERSION)' -o bin/race/ ./cmd/...

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

.PHONY: clean
clean: ## Remove bin/ and the built tools; the lab's control planes stay
	rm -rf bin .cache/tools

##@ Generate and verify

.PHONY: generate
generate: generate-api generate-charts generate-dashboards generate-fixtures generate-metrics ## Regenerate everything that is generated

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
generate-fixtures: ## Generate the expected manifests of the override tests, and the expected reports of crdupgrade
	go test ./overrides -update
	go test ./crdupgrade -run TestFixtures -update

.PHONY: generate-metrics
generate-metrics: ## Generate the table of docs/metrics.md from the registry of the hub
	go test ./test/docs -run TestThePageOfMetrics -update

.PHONY: verify
verify: verify-generated verify-lint verify-import-rules verify-vet verify-charts verify-upgrade verify-docs verify-modules verify-workflows bundle-validate ## Everything that CI checks before it runs tests
	$(call say,verified)

.PHONY: verify-generated
verify-generated: generate ## Check that generated files are current and committed
	$(call say,checking that generated files are current)
	@hack/verify-generated.sh

.PHONY: verify-lint
verify-lint: ## Run golangci-lint on every module with code of Hanse
	$(call say,linting the modules)
	@for m in $(MODULES); do (set -x; cd $$m && $(CURDIR)/$(TOOL) golangci-lint run ./...); done

.PHONY: verify-import-rules
verify-import-rules: ## Check that the linter refuses an import against the direction of the packages
	$(call say,checking that the import rules bite)
	@hack/verify-import-rules.sh

.PHONY: verify-vet
verify-vet: ## Run go vet on every module with code of Hanse
	$(call say,vetting the modules)
	@for m in $(MODULES); do (set -x; go vet -C $$m ./...); done

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
verify-workflows: ## Check that the workflows of GitHub are valid, and that dependabot updates every module
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
test: test-unit test-envtest test-e2e test-pods ## Run all tests, with the race detector

.PHONY: test-unit
test-unit: ## Run the tests that need only Go
	$(call say,unit tests of all modules)
	$(GOTESTSUM) -- -race -short ./...
	$(call say,bounds of time and memory, and statuses of operators by their own definitions, without the race detector)
	$(GOTESTSUM) -- ./chart/child ./expression ./overrides ./hub/rollup ./member/health ./test/operators ./view
	cd lab && ../$(GOTESTSUM) -- -race -short ./...
	cd hack/image && ../../$(GOTESTSUM) -- -race -short -count=1 ./... # they run files that Go's test cache does not see
	cd hack/release && HANSE_HELM="$$(../../$(TOOL) --path helm)" ../../$(GOTESTSUM) -- -race -short ./...
	cd hack/crdcheck && ../../$(GOTESTSUM) -- ./...
	cd hack/monitoring && ../../$(GOTESTSUM) -- -count=1 ./... # they run files that Go's test cache does not see

.PHONY: test-envtest
test-envtest: lab node-packages ## Run the tests against a real API server, and the tests of the lab
	$(call say,tests against a real API server)
	KUBEBUILDER_ASSETS="$$(bin/lab build --print-bin)" $(GOTESTSUM) -- -race -timeout 25m -p 3 $$(hack/envtest-packages.sh)
	cd lab && ../$(GOTESTSUM) -- -race . ./build

.PHONY: test-e2e
test-e2e: lab build-race browser ## Run the end-to-end tests, with a hub and regional clusters on the lab; E2E_RUN='TestA|TestB' selects some
	$(call say,end-to-end tests on the lab)
	bin/lab build prometheus
	@$(IN_BROWSER) $(GOTESTSUM) -- -race -count=1 ./test/browser
	@$(call ON_LAB,bin/race) $(IN_BROWSER) exec hack/e2e.sh

.PHONY: test-pods
test-pods: build lab node-packages ## Test the charts as pods on real nodes: install, upgrade, roll back, drain, uninstall
	$(call say,tests of the charts on real nodes)
	$(MAKE) images VERSION=$(CHART_VERSION) IMAGE_PLATFORMS=linux/$$(go env GOARCH)
	hack/older.sh
	bin/lab build cert-manager
	$(call ON_LAB,bin) HANSE_IMAGES=$(CURDIR)/bin/images HANSE_OLDER="$$(hack/older.sh --path)" \
		$(TOOL) gotestsum --format testname --packages ./test/pods -- -count=1 -timeout 15m

.PHONY: screenshots
screenshots: ## Take the pictures of docs/console.md from the console of a lab, into docs/images
	@mkdir -p docs/images
	$(MAKE) test-e2e E2E_RUN=TestThePagesAsPictures HANSE_SCREENSHOTS=$(CURDIR)/docs/images

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
