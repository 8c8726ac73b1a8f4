"""The certificates of a self-contained installation.

`cryptography` is imported only when a certificate must be created.
"""

from tetrapod.generic.certificates.kubeconfig import kubeconfig, write_kubeconfig
from tetrapod.generic.certificates.pki import Pki, write_pki

__all__ = ["Pki", "kubeconfig", "write_kubeconfig", "write_pki"]
