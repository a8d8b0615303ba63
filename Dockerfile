# Static binaries on a small base that has wget for health checks.
FROM golang:1.26-alpine AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0
RUN go build -trimpath -buildvcs=false -ldflags="-s -w" -o /out/ ./cmd/worker ./cmd/quipu ./cmd/journal-verify

FROM alpine:3.22
RUN apk add --no-cache ca-certificates tzdata && adduser -D -H -u 10001 quipu
COPY --from=build /out/ /usr/local/bin/
USER 10001:10001
WORKDIR /flows
ENTRYPOINT ["worker"]
