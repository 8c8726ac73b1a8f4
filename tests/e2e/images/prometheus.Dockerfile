# Prometheus as tools/prometheus.sh built it, for machines that reach no image registry. The context is the directory of the binaries.
ARG BASE=tetrapod-base:trixie
FROM ${BASE}
COPY prometheus promtool /usr/local/bin/
ENTRYPOINT ["prometheus"]
