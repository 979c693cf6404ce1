"""Certificates, and credentials as nsc writes them, for the tests of groups. Needs openssl."""

import base64
import hashlib
import json
import os
import subprocess
import time


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout


class Certificates:
    """An authority, and a certificate of a server at 127.0.0.1 and one of a client, which it signed."""

    def __init__(self, directory):
        self.directory = directory
        self.authority = os.path.join(directory, "ca.pem")
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority",
                "-keyout", self.path("ca.key"), "-out", self.authority)
        for name in ("server", "client"):
            openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                    "-keyout", self.path(f"{name}.key"), "-out", self.path(f"{name}.csr"))
            with open(self.path("extensions"), "w") as file:
                file.write("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
            openssl("x509", "-req", "-in", self.path(f"{name}.csr"), "-CA", self.authority, "-CAkey", self.path("ca.key"),
                    "-CAcreateserial", "-days", "2", "-extfile", self.path("extensions"), "-out", self.path(f"{name}.pem"))

    def path(self, name):
        return os.path.join(self.directory, name)

    def server_text(self, verifies=False):
        """What a server's configuration needs."""
        return (f'tls {{ cert_file: "{self.path("server.pem")}", key_file: "{self.path("server.key")}", '
                f'ca_file: "{self.authority}", verify: {"true" if verifies else "false"}, timeout: 5 }}')


class Key:
    """An Ed25519 key with the names that NATS gives it."""

    PREFIXES = {"operator": 14 << 3, "account": 0, "user": 20 << 3, "seed": 18 << 3}

    def __init__(self, kind, directory):
        self.kind, self.seed = kind, os.urandom(32)
        self.file = os.path.join(directory, f"{kind}-{self.seed.hex()[:8]}.der")
        with open(self.file, "wb") as file:
            file.write(bytes.fromhex("302e020100300506032b657004220420") + self.seed)
        self.raw = openssl("pkey", "-inform", "DER", "-in", self.file, "-pubout", "-outform", "DER")[-32:]

    @staticmethod
    def text(data):
        crc = 0
        for byte in data:
            crc ^= byte << 8
            for _ in range(8):
                crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xffff
        return base64.b32encode(data + crc.to_bytes(2, "little")).decode().rstrip("=")

    @property
    def public(self):
        return self.text(bytes([self.PREFIXES[self.kind]]) + self.raw)

    @property
    def secret(self):
        prefix = self.PREFIXES[self.kind]
        return self.text(bytes([self.PREFIXES["seed"] | prefix >> 5, (prefix & 31) << 3]) + self.seed)

    def sign(self, data, directory):
        path = os.path.join(directory, "message")
        with open(path, "wb") as file:
            file.write(data)
        return openssl("pkeyutl", "-sign", "-rawin", "-keyform", "DER", "-inkey", self.file, "-in", path)


def encoded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def token(issuer, subject, name, facts, directory):
    """A signed token of NATS."""
    claims = {"iat": int(time.time()), "iss": issuer.public, "name": name, "sub": subject.public, "nats": facts}
    claims["jti"] = base64.b32encode(hashlib.sha256(json.dumps(claims).encode()).digest()).decode().rstrip("=")
    head = encoded(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    text = f"{head}.{encoded(json.dumps(claims).encode())}"
    return f"{text}.{encoded(issuer.sign(text.encode(), directory))}"


class Credentials:
    """An operator with one account and one user of it, whose credentials are in a file; and a file of another user."""

    def __init__(self, directory):
        operator, account, system = (Key(kind, directory) for kind in ("operator", "account", "account"))
        limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1,
                  "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
        operator_token = token(operator, operator, "operator", {"type": "operator", "version": 2}, directory)
        none = {key: value for key, value in limits.items() if not key.endswith("storage") and key not in ("streams", "consumer")}
        system_token = token(operator, system, "system", {"type": "account", "version": 2, "limits": none}, directory)
        account_token = token(operator, account, "account", {"type": "account", "version": 2, "limits": limits}, directory)
        self.server_text = (f'operator: "{operator_token}"\nresolver: MEMORY\nsystem_account: {system.public}\n'
                            f'resolver_preload: {{ {account.public}: "{account_token}", {system.public}: "{system_token}" }}')
        self.path = self.write(directory, "user.creds", account)
        self.wrong_path = self.write(directory, "other.creds", Key("account", directory))

    @staticmethod
    def write(directory, name, account):
        user = Key("user", directory)
        facts = {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}}
        text = token(account, user, "user", facts, directory)
        path = os.path.join(directory, name)
        with open(path, "w") as file:
            file.write(f"-----BEGIN NATS USER JWT-----\n{text}\n------END NATS USER JWT------\n\n"
                       f"-----BEGIN USER NKEY SEED-----\n{user.secret}\n------END USER NKEY SEED------\n")
        return path
