# syntax=docker/dockerfile:1
# The image of one command, for machines that build with docker. `make images` writes the same image without docker.
#
#   docker build --build-arg BINARY=hanse-hub --build-arg VERSION=0.1.0 --build-arg REVISION=$(git rev-parse HEAD) \
#     --build-arg CREATED=$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd) .

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
COPY hack/image/go.mod hack/image/go.sum hack/image/
RUN --mount=type=cache,target=/go/pkg/mod go mod download && go mod download -C hack/image
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    mkdir /image && go run -C hack/image ./cmd/image base | tar -xC /image
ARG BINARY=hanse-hub
ARG VERSION=unknown
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /image/hanse ./cmd/$BINARY

FROM scratch
COPY --from=build /image/ /
ARG BINARY=hanse-hub
ARG VERSION=unknown
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.created=$CREATED \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.source=https://github.com/hanse-dev/hanse \
      org.opencontainers.image.title=$BINARY \
      org.opencontainers.image.version=$VERSION
USER 65532:65532
ENTRYPOINT ["/hanse"]
