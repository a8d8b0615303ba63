# Static binaries on a small base that has wget for health checks. A digest is that of the
# image for all platforms; Dependabot moves it together with the tag.
FROM golang:1.26.8-alpine3.23@sha256:a8fa79c5bd40d880b52bd3b6d7669ecdcfd00e85facdd427d279efb5ddd79cb1 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0
# The build that entries of the journal name: --build-arg BUILD, such as a version, or the sum of
# the sources.
ARG BUILD
RUN build=${BUILD:-sources-$(find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16)} && \
	go build -trimpath -buildvcs=false -ldflags="-s -w -X github.com/quipu-journal/quipu/cmd/internal/cli.build=$build" \
	-o /out/ ./cmd/worker ./cmd/quipu ./cmd/journal-verify

FROM alpine:3.22.5@sha256:14358309a308569c32bdc37e2e0e9694be33a9d99e68afb0f5ff33cc1f695dce
RUN apk add --no-cache ca-certificates tzdata && adduser -D -H -u 10001 quipu
COPY --from=build /out/ /usr/local/bin/
COPY LICENSE NOTICE /usr/share/doc/quipu/
USER 10001:10001
WORKDIR /flows
ENTRYPOINT ["worker"]
