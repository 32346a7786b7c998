# syntax=docker/dockerfile:1
# One image per command: docker build --build-arg BINARY=hanse-hub|hansectl --build-arg VERSION=v0.1.0 .

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG BINARY=hanse-hub
ARG VERSION=unknown
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/hanse ./cmd/$BINARY

FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/hanse /hanse
USER 65532:65532
ENTRYPOINT ["/hanse"]
