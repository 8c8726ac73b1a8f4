# etcd as tools/etcd.sh built it, for machines that reach no image registry. The context is the directory of the binary.
ARG BASE=tetrapod-base:local
FROM ${BASE}
COPY etcd /usr/local/bin/etcd
CMD ["etcd"]
