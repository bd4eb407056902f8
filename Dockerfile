# relayerd alone, as a static binary. docs/relayerd.md explains how to run it.

FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /relayerd ./cmd/relayerd
# The image has no shell that could create directories.
RUN mkdir /data /backups

FROM scratch
# For connections to PostgreSQL that verify the server with a public authority.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /relayerd /relayerd
COPY --from=build --chown=65532:65532 /data /data
COPY --from=build --chown=65532:65532 /backups /backups
USER 65532:65532
VOLUME /data
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=10s --start-period=30s CMD ["/relayerd", "healthcheck", "--addr", "127.0.0.1:8080"]
ENTRYPOINT ["/relayerd"]
# Each of them can be set to another value, as every flag of serve.
ENV RELAYERD_ADDR=:8080 RELAYERD_METRICS_ADDR=:9090 RELAYERD_DB=/data/relayers.db
CMD ["serve"]
