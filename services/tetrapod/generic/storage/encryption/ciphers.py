"""The ciphers: AES-CBC, AES-GCM, AES-GCM with keys derived from a seed, and secretbox (XSalsa20 and Poly1305).

Formats and error texts are identical to upstream's, even the misleading text of secretbox.
Upstream: staging/src/k8s.io/apiserver/pkg/storage/value/encrypt/aes/aes.go, aes_extended_nonce.go;
encrypt/secretbox/secretbox.go
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from tetrapod.generic.storage.encryption.transformer import Plain, TransformError

TOO_SHORT: Final = "the stored data was shorter than the required size"
_BLOCK: Final = 16
_NONCE: Final = 12
SEED_SIZE: Final = 32
_INFO_SIZE: Final = 32
_KEYS_KEPT: Final = 4096


class AesCbc:
    """The transformer of the provider `aescbc`: a stored value is the IV, followed by blocks padded with PKCS #7.

    The format neither authenticates the value nor binds it to the key under which it is stored; upstream's
    documentation warns of this too.
    """

    def __init__(self, key: bytes) -> None:
        self._algorithm = AES(key)

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        if len(data) < _BLOCK:
            raise TransformError(TOO_SHORT)
        if len(data) % _BLOCK:
            raise TransformError("the stored data is not a multiple of the block size")
        decryptor = Cipher(self._algorithm, CBC(data[:_BLOCK])).decryptor()
        padded = decryptor.update(data[_BLOCK:]) + decryptor.finalize()
        size = padded[-1] if padded else 0
        if not 0 < size <= len(padded):
            raise TransformError("invalid PKCS7 data (empty or not padded)")
        if padded[-size:] != padded[-1:] * size:
            raise TransformError("invalid padding on input")
        return Plain(padded[:-size], False)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        iv = os.urandom(_BLOCK)
        size = _BLOCK - len(data) % _BLOCK
        encryptor = Cipher(self._algorithm, CBC(iv)).encryptor()
        return iv + encryptor.update(data + bytes([size]) * size) + encryptor.finalize()


class AesGcm:
    """The transformer of the provider `aesgcm`: a stored value is a random nonce, followed by the ciphertext.

    The value's key in the store (`context`) is authenticated as additional data.
    """

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)

    def open(self, data: bytes, context: bytes) -> bytes:
        """Decrypt `data`, the result of `seal` with the same `context` (additional authenticated data).

        Raises:
            TransformError: the data is too short, or was encrypted with another key or context.
        """
        if len(data) < _NONCE:
            raise TransformError(TOO_SHORT)
        try:
            return self._aead.decrypt(data[:_NONCE], data[_NONCE:], context)
        except InvalidTag:
            raise TransformError("cipher: message authentication failed") from None

    def seal(self, data: bytes, context: bytes) -> bytes:
        """Encrypt `data` with a new nonce, and return nonce and ciphertext. `context` is authenticated, not stored."""
        nonce = os.urandom(_NONCE)
        return nonce + self._aead.encrypt(nonce, data, context)

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        return Plain(self.open(data, context), False)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        return self.seal(data, context)


class SeededGcm:
    """A transformer that encrypts each value by AES-GCM with a key of its own, as KMS v2 requires.

    The key is derived by HKDF from a seed and 32 random bytes that precede the ciphertext. A seed shorter than 32 bytes
    raises TransformError.
    """

    def __init__(self, seed: bytes) -> None:
        if len(seed) < SEED_SIZE:
            raise TransformError(f"invalid seed length {len(seed)} used for key generation")
        self._seed = seed
        self._derived: OrderedDict[bytes, AesGcm] = OrderedDict()

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        if len(data) < _INFO_SIZE:
            raise TransformError(TOO_SHORT)
        return Plain(self._cipher(data[:_INFO_SIZE]).open(data[_INFO_SIZE:], context), False)

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        info = os.urandom(_INFO_SIZE)
        return info + self._cipher(info).seal(data, context)

    def _cipher(self, info: bytes) -> AesGcm:
        """Return the cipher whose key is derived from the seed and the random bytes `info`.

        The last ones are cached, because the watch reads back each value that was just written.
        """
        cipher = self._derived.get(info)
        if cipher is None:
            cipher = self._derived[info] = AesGcm(HKDFExpand(SHA256(), SEED_SIZE, info).derive(self._seed))
            if len(self._derived) > _KEYS_KEPT:
                self._derived.popitem(last=False)
        return cipher


class Secretbox:
    """The transformer of the provider `secretbox`: a stored value is a random nonce, followed by NaCl's secret box.

    PyNaCl is imported only if this cipher is used.

    Args:
        key: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        from nacl.exceptions import CryptoError
        from nacl.secret import SecretBox

        self._box = SecretBox(key)
        self._error = CryptoError
        self._nonce_size = SecretBox.NONCE_SIZE
        self._least = SecretBox.NONCE_SIZE + SecretBox.MACBYTES

    async def from_storage(self, data: bytes, context: bytes) -> Plain:
        if len(data) < self._least:
            raise TransformError(TOO_SHORT)
        try:
            return Plain(self._box.decrypt(data[self._nonce_size :], data[: self._nonce_size]), False)
        except self._error:
            raise TransformError("output array was not large enough for encryption") from None

    async def to_storage(self, data: bytes, context: bytes) -> bytes:
        return bytes(self._box.encrypt(data, os.urandom(self._nonce_size)))
