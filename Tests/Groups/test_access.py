"""Users, passwords, tokens, credentials and certificates, and a host without libnats."""

import json
import os
import shutil
import subprocess
import unittest

from group_processes import Client, program, temporary, wait_for
from group_testing import GroupTest
from nats_secrets import Certificates, Credentials


class Passwords(GroupTest):
    server_text = "authorization { user: u, password: p }"

    def test_texts_that_libnats_does_not_quote(self):
        # The name of a host is for people.
        host = 'a "b"\\c"\u0301'
        daemon = self.daemon(host, url=f"nats://u:p@127.0.0.1:{self.port}")
        daemon.start()
        client = daemon.ready()
        self.assertEqual([member["host"] for member in wait_for(lambda: client.call("group")["members"], 20, "member")],
                         [host])
        path = os.path.join(self.directory, "c.json")
        with open(path, "w") as file:
            json.dump({"group": {"user": "u", "password": 'p"'}}, file)
        text = self.failure("b", "--config", path)
        self.assertIn('libnats may not send \\ and " in "user", "password" and "token": choose others', text)

    def test_a_wrong_password(self):
        for url in (self.servers.url, f"nats://u:wrong@127.0.0.1:{self.port}"):
            text = self.failure("a", url=url)
            self.assertIn("Authorization Violation; check the URL of --log and the credentials in the configuration", text)
            self.assertNotIn("wrong@", text)

    def test_a_right_password(self):
        path = os.path.join(self.directory, "c.json")
        with open(path, "w") as file:
            json.dump({"group": {"user": "u", "password": "p"}}, file)
        (_, a), (_, b) = self.start("a", url=f"nats://u:p@127.0.0.1:{self.port}"), self.start("b", "--config", path)
        a.call("define", feed="x", kind="array")
        self.await_same(a, b, feed="x")


class Tokens(GroupTest):
    server_text = 'authorization { token: "secret" }'

    def test_a_token(self):
        text = self.failure("a", url=f"nats://other@127.0.0.1:{self.port}")
        self.assertIn("Authorization Violation; check the URL of --log and the credentials in the configuration", text)
        path = os.path.join(self.directory, "c.json")
        with open(path, "w") as file:
            json.dump({"group": {"token": "secret"}}, file)
        (_, a), (_, b) = self.start("a", url=f"nats://secret@127.0.0.1:{self.port}"), self.start("b", "--config", path)
        a.call("define", feed="x", kind="array")
        self.await_same(a, b, feed="x")


class CredentialsFiles(GroupTest):
    @classmethod
    def setUpClass(cls):
        cls.secrets = temporary()
        cls.addClassCleanup(shutil.rmtree, cls.secrets, True)
        cls.credentials = Credentials(cls.secrets)
        cls.server_text = cls.credentials.server_text
        super().setUpClass()

    def configuration(self, path):
        name = os.path.join(self.directory, "c.json")
        with open(name, "w") as file:
            json.dump({"group": {"credentials": path}}, file)
        return "--config", name

    def test_files_of_credentials(self):
        for path, reason in ((self.credentials.wrong_path, "Authorization Violation"), ("absent.creds", "absent.creds")):
            text = self.failure("a", *self.configuration(path))
            self.assertIn(reason, text)
            self.assertIn("check the URL of --log and the credentials in the configuration", text)
        _, a = self.start("a", *self.configuration(self.credentials.path))
        a.call("define", feed="x", kind="array")
        self.assertEqual(a.call("hello")["log"], "connected")


class Encryption(GroupTest):
    @classmethod
    def setUpClass(cls):
        cls.secrets = temporary()
        cls.addClassCleanup(shutil.rmtree, cls.secrets, True)
        cls.certificates = Certificates(cls.secrets)
        cls.server_text = cls.certificates.server_text(verifies=True)
        super().setUpClass()

    def configuration(self, **group):
        name = os.path.join(self.directory, "c.json")
        with open(name, "w") as file:
            json.dump({"group": group}, file)
        return "--config", name

    def test_certificates(self):
        path = self.certificates.path
        url = f"tls://127.0.0.1:{self.port}"
        for settings in ({}, {"authority": path("ca.pem")}):
            text = self.failure("a", *self.configuration(**settings), url=url)
            self.assertIn("check the URL of --log and the credentials in the configuration", text)
        own = {"authority": path("ca.pem"), "certificate": path("client.pem"), "key": path("client.key")}
        _, a = self.start("a", *self.configuration(**own), url=url)
        a.call("define", feed="x", kind="array")
        self.assertEqual(a.call("hello")["log"], "connected")

    def test_certificates_that_are_replaced_while_a_member_runs(self):
        path = self.certificates.path
        own = {"authority": path("ca.pem"), "certificate": path("client.pem"), "key": path("client.key")}
        _, a = self.start("a", *self.configuration(**own), url=f"tls://127.0.0.1:{self.port}")
        self.servers.processes[0].kill()
        wait_for(lambda: a.call("group")["log"] != "connected", 20, "outage")
        # The authority is another one too.
        Certificates(self.secrets)
        self.servers.start()
        wait_for(lambda: a.call("group")["log"] == "connected", 60, "connection")
        a.call("define", feed="x", kind="array")


class WithoutLibrary(GroupTest):
    def test_the_error_names_the_package(self):
        source, library = (os.path.join(self.directory, name) for name in ("no.c", "no.so"))
        with open(source, "w") as file:
            file.write("""#define _GNU_SOURCE
                #include <dlfcn.h>
                #include <string.h>
                void *dlopen(const char *name, int flags) {
                  if (name && strstr(name, "libnats")) return 0;
                  return ((void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen"))(name, flags);
                }""")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source], check=True)
        text = self.failure("a", environment={"LD_PRELOAD": library})
        self.assertIn("cannot join a group: libnats is not installed; install it with: apt-get install libnats3.4", text)

    def test_a_daemon_without_a_group_does_not_load_it(self):
        path = os.path.join(self.directory, "s")
        alone = subprocess.Popen([program("feedd"), "--socket", path, "--state", os.path.join(self.directory, "state")],
                                 stderr=subprocess.DEVNULL)
        try:
            client = wait_for(lambda: Client(path), 20, "daemon")
            self.assertNotIn("log", client.call("hello"))
            with open(f"/proc/{alone.pid}/maps") as file:
                self.assertNotIn("libnats", file.read())
            self.assertEqual(client.call("group"), {"group": None, "log": "local"})
            self.assertIn("this daemon is in no group", client.error("group", action="leave")["message"])
        finally:
            alone.kill()
            alone.wait()
