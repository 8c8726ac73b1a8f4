"""Encryption at rest, by upstream's EncryptionConfiguration and in its formats: a stock kube-apiserver on the same store reads what we
write, and we what it wrote. `Encryption` is the whole of it; nothing here is imported where no configuration is given."""
