# Debian's redis, for machines that reach no image registry.
ARG BASE=tetrapod-base:trixie
FROM ${BASE}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server >/dev/null && rm -rf /var/lib/apt/lists/*
CMD ["redis-server"]
