# lancekeeper. `make help` lists what there is; `make demo` and `make test` need nothing set up beforehand.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

ARCH    ?= arm64
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
export LANCEKEEPER_CACHE ?= $(CURDIR)/.cache

# One static binary a function. The same flags for Lambda (linux, GOARCH set) and for this machine.
GOBUILD = CGO_ENABLED=0 go build -tags lambda.norpc -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'

.PHONY: help demo test unit race integration oracle emulator template lint fuzz bench generate build host lambda deploy invoke clean \
	build-MaintainFunction build-ReportFunction

help: ## list the targets
	@awk -F':.*## ' '/^[a-zA-Z-]+:.*## /{printf "  make %-24s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: host ## see a bloated dataset become small (needs Go only)
	@demo/run .build/bin

test: ## everything: builds, lint, all tests against real engines and servers; sets up what it needs in .cache
	@test/run all

unit: ## unit tests only, in seconds
	go test ./...

race: ## unit tests under the race detector (needs a C compiler)
	@test/run race

integration: ## tests against a real S3 server and a real DynamoDB implementation on loopback
	@test/run integration

oracle: ## differential tests against the official engines (pylance, lancedb)
	@test/run oracle

emulator: ## tests of the built functions under the Lambda runtime interface emulator
	@test/run emulator

template: ## checks of template.yaml: sam validate, cfn-lint, policies, alarms, built binaries
	@test/run template

lint: ## golangci-lint with the rules of the house
	@$$(tools/get golangci-lint) run ./...

fuzz: ## each fuzz target for FUZZTIME (default 30s)
	@test/fuzz $${FUZZTIME:-30s}

bench: host ## measure compaction and pruning beside the official engine, in one run
	@test/bench

generate: ## regenerate the protobuf code
	@buf=$$(tools/get buf); PATH=$$(dirname "$$(tools/get protoc-gen-go)"):$$PATH; cd internal/lance/lancepb && "$$buf" generate

build: host lambda ## host binaries in .build/bin, Lambda's in .build/{arm64,amd64}/{maintain,report}/bootstrap

host:
	@$(GOBUILD) -o .build/bin/maintain ./functions/maintain
	@$(GOBUILD) -o .build/bin/report ./functions/report

lambda:
	@for arch in arm64 amd64; do for f in maintain report; do \
	  GOOS=linux GOARCH=$$arch $(GOBUILD) -o .build/$$arch/$$f/bootstrap ./functions/$$f; done; done

# Called by `sam build`, once a function, with ARTIFACTS_DIR set and ARCH from samconfig or the command line.
build-MaintainFunction:
	GOOS=linux GOARCH=$(subst x86_64,amd64,$(ARCH)) $(GOBUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/maintain

build-ReportFunction:
	GOOS=linux GOARCH=$(subst x86_64,amd64,$(ARCH)) $(GOBUILD) -o "$(ARTIFACTS_DIR)/bootstrap" ./functions/report

deploy: ## build and deploy with SAM, as samconfig.toml says (the first time: `make deploy GUIDED=1`, which writes it)
	ARCH=$(ARCH) sam build --build-in-source && sam deploy $(if $(GUIDED),--guided) $(if $(PARAMETERS),--parameter-overrides "$(PARAMETERS)")

# Not `sam remote invoke`: it gives up after a minute and invokes again.
invoke: ## run the deployed maintain function once: make invoke [STACK=lancekeeper] [EVENT=infra/events/scheduler.json]
	@function=$$(aws cloudformation describe-stack-resource --stack-name $${STACK:-lancekeeper} --logical-resource-id MaintainFunction \
	  --query StackResourceDetail.PhysicalResourceId --output text) && \
	AWS_MAX_ATTEMPTS=1 aws lambda invoke --function-name "$$function" --cli-read-timeout 0 --cli-binary-format raw-in-base64-out \
	  --payload file://$${EVENT:-infra/events/scheduler.json} /dev/stdout

clean: ## remove what was built (not the cache of tools: that is .cache)
	rm -rf .build .aws-sam
