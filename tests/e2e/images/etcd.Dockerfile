# etcd and etcdctl as tools/etcd.sh built them, for machines that reach no image registry. The context is the directory of the binaries.
ARG BASE=tetrapod-base:trixie
FROM ${BASE}
COPY etcd etcdctl /usr/local/bin/
CMD ["etcd"]
