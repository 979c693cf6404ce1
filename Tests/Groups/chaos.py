#!/usr/bin/env python3
"""Three daemons of one group and three NATS servers, which are killed, stopped and cut off at random while clients push and
watch. At the end every acknowledged change is there exactly once, no refused one is there twice, and all members agree.

A server is killed, stopped or cut off only while all have what was acknowledged. Two are stopped together, but not killed. Servers
older than 2.10.22 are killed only: their copies may differ after others (Protocol/groups.md, "What the servers keep"). The copies of
the servers are compared after each fault.

usage: chaos.py [--seconds N] [--seed N] [--servers N] [--without FAULT]...

FEEDD_NATS_SERVER names another nats-server than the installed one.
"""

import argparse
import os
import random
import selectors
import shutil
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../Protocol/clients/python")]

import feedd  # noqa: E402
import nats_copies  # noqa: E402
from group_processes import Daemon, Servers, free_ports, nats_version, program, request, temporary, wait_for  # noqa: E402


class Proxy:
    """Forwards connections of a daemon or a server to a server, until it is cut."""

    def __init__(self, target):
        self.target, self.port = target, free_ports(1)[0]
        self.is_cut = False
        self.pairs = {}
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(16)
        self.selector.register(self.listener, selectors.EVENT_READ)
        threading.Thread(target=self.run, daemon=True).start()

    def cut(self, is_cut):
        self.is_cut = is_cut

    def run(self):
        while True:
            for key, _ in self.selector.select(0.1):
                if key.fileobj is self.listener:
                    self.accept()
                else:
                    self.forward(key.fileobj)
            if self.is_cut:
                for sock in list(self.pairs):
                    self.close(sock)

    def accept(self):
        client, _ = self.listener.accept()
        try:
            if self.is_cut:
                raise OSError
            server = socket.create_connection(("127.0.0.1", self.target), 2)
        except OSError:
            client.close()
            return
        for one, other in ((client, server), (server, client)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.pairs[one] = other
            self.selector.register(one, selectors.EVENT_READ)

    def forward(self, sock):
        if sock not in self.pairs:
            return
        try:
            data = sock.recv(1 << 16)
            if not data:
                raise OSError
            self.pairs[sock].settimeout(2)
            self.pairs[sock].sendall(data)
        except OSError:
            self.close(sock)

    def close(self, sock):
        other = self.pairs.pop(sock, None)
        for one in (sock, other):
            if one is None:
                continue
            self.pairs.pop(one, None)
            try:
                self.selector.unregister(one)
            except (KeyError, ValueError):
                pass
            one.close()


KINDS = ("kill daemon", "stop daemon", "cut daemon", "kill server", "stop server", "cut server", "stop two servers")
OF_NEW_SERVERS = ("stop server", "cut server", "stop two servers")


class Chaos:
    def __init__(self, seconds, seed, server_count, without=()):
        self.random = random.Random(seed)
        self.seconds, self.seed = seconds, seed
        self.kinds = [kind for kind in KINDS if kind not in without]
        self.directory = temporary()
        # Between each two servers, and the places of the two.
        self.routes = []
        self.servers = Servers(self.directory, server_count, "", no_advertise=True, routed=self.route)
        self.is_over = False
        self.lock = threading.Lock()
        self.problems = []
        # What each pusher sent: acknowledged, and not known.
        self.acknowledged, self.unknown, self.refused = set(), set(), set()
        # The digest of each revision, and where it was seen.
        self.digests = {}
        self.resumed, self.reset, self.moves = 0, 0, 0
        self.copies_differ = False
        self.daemons, self.proxies = [], []

    def route(self, one, other, port):
        proxy = Proxy(port)
        self.routes.append(((one, other), proxy))
        return proxy.port

    def problem(self, text):
        with self.lock:
            self.problems.append(text)
        print("PROBLEM", text, flush=True)

    # MARK: Clients

    def push(self, number):
        """Inserts elements with names of their own at one daemon after the other, each once."""
        rng = random.Random(self.seed * 100 + number)
        client, place, daemon = None, 0, self.daemons[number % len(self.daemons)]
        while not self.is_over:
            try:
                if client is None:
                    daemon = rng.choice(self.daemons)
                    client = daemon.connect(timeout=40)
                names = [f"p{number}-{place + k}" for k in range(rng.randint(1, 4))]
                place += len(names)
                request = client.send("insert", feed="list", elements=[{"id": n} for n in names],
                                      result="counts")
                with self.lock:
                    self.unknown.update(names)
                answer = client.answer(request)
                with self.lock:
                    self.unknown.difference_update(names)
                    if "result" in answer:
                        self.acknowledged.update(names)
                    elif answer["error"]["code"] == -32008:
                        self.refused.update(names)
                        if "may be stored" not in answer["error"]["message"]:
                            pass
                    else:
                        self.problems.append(f"push: {answer}")
                if "error" in answer or rng.random() < 0.002:
                    client.close()
                    client = None
                time.sleep(rng.random() * 0.02)
            except (OSError, ConnectionError, RuntimeError):
                if client:
                    client.close()
                client = None
                time.sleep(0.1)

    def watch(self, number):
        """Keeps a copy of the list, on one daemon after the other, and compares its digest."""
        rng = random.Random(self.seed * 1000 + number)
        mirror, epoch, last = None, None, None
        while not self.is_over:
            daemon = rng.choice(self.daemons)
            until = time.monotonic() + rng.uniform(2, 12)
            try:
                with feedd.Connection(daemon.path, client="chaos", timeout=15) as connection:
                    since = None
                    if mirror is not None and mirror.whole:
                        since = {"epoch": epoch, "revision": mirror.revision}
                    options = {"since": since} if since else {}
                    watch = connection.watch("list", **options)
                    if since:
                        with self.lock:
                            if watch.result["resumed"]:
                                self.resumed += 1
                            else:
                                self.reset += 1
                            if daemon is not last:
                                self.moves += 1
                    if not (since and watch.result["resumed"]):
                        mirror = feedd.Mirror(watch.result)
                    epoch, last = watch.result["epoch"], daemon
                    while time.monotonic() < until and not self.is_over:
                        try:
                            message = watch.next(timeout=0.5)
                        except TimeoutError:
                            continue
                        if mirror.apply(message):
                            self.note(mirror.revision, mirror.digest(), f"watcher {number} of {daemon.host}")
            except feedd.Gap as gap:
                self.problem(f"watcher {number}: {gap}")
                mirror = None
            except (OSError, feedd.Refused, feedd.Closed, TimeoutError):
                time.sleep(0.2)

    def note(self, revision, digest, who):
        with self.lock:
            known = self.digests.setdefault(revision, (digest, who))
        if known[0] != digest:
            self.problem(f"revision {revision}: {who} has {digest}, {known[1]} had {known[0]}")

    def verify(self):
        """Asks all daemons for digests."""
        while not self.is_over:
            for daemon in self.daemons:
                try:
                    client = daemon.connect(timeout=5)
                    answer = client.call("verify", feed="list")
                    self.note(answer["revision"], answer["digest"], f"daemon {daemon.host}")
                    client.close()
                except (OSError, RuntimeError, ConnectionError):
                    pass
            time.sleep(0.3)

    # MARK: Faults

    def fault(self):
        rng = self.random
        kind = rng.choice(self.kinds)
        pause = rng.uniform(0.5, 6)
        if kind == "kill daemon":
            daemon = rng.choice(self.daemons)
            daemon.kill()
            time.sleep(pause)
            daemon.start()
        elif kind == "stop daemon":
            daemon = rng.choice(self.daemons)
            daemon.stop()
            time.sleep(pause)
            daemon.resume()
        elif kind == "cut daemon":
            proxies = rng.choice(self.proxies)
            for proxy in proxies:
                proxy.cut(True)
            time.sleep(pause)
            for proxy in proxies:
                proxy.cut(False)
        else:
            count = 2 if kind == "stop two servers" else 1
            chosen = rng.sample(self.servers.processes, min(count, len(self.servers.processes)))
            is_kill = kind == "kill server"
            if not self.are_complete():
                return "nothing, because a server lacks messages,", 0
            if kind == "cut server":
                return self.cut_server(self.servers.processes.index(chosen[0]), rng.random() < 0.5, pause)
            for server in chosen:
                server.kill() if is_kill else server.stop()
            time.sleep(pause)
            for server in chosen:
                server.start() if is_kill else server.resume()
        return kind, pause

    def cut_server(self, place, with_clients, pause):
        """Cuts a server off from the others, and perhaps from the daemons."""
        cut = [proxy for ends, proxy in self.routes if place in ends]
        if with_clients:
            cut += [proxies[place] for proxies in self.proxies]
        for proxy in cut:
            proxy.cut(True)
        time.sleep(pause)
        for proxy in cut:
            proxy.cut(False)
        return "cut server" if with_clients else "cut server from servers", pause

    def are_complete(self, seconds=20):
        """Waits until all servers have complete copies of the streams. Returns whether they have."""
        def is_complete(stream):
            return all(is_current(request(port, f"$JS.API.STREAM.INFO.{stream}", {})) for port in self.servers.ports)

        def is_current(info):
            cluster = info.get("cluster", {})
            copies = cluster.get("replicas", [])
            return info.get("error", {}).get("err_code") == 10059 or cluster.get("leader") and len(copies) == 2 and all(
                copy["current"] and not copy.get("offline") and copy.get("lag", 0) < 8 for copy in copies)
        try:
            for stream in ("feedd_test", "OBJ_feedd_test"):
                wait_for(lambda: is_complete(stream), seconds, "complete copies")
            return True
        except TimeoutError:
            return False

    def can_store(self):
        """Whether the servers found each other: they store a stream with as many copies."""
        config = {"name": "probe", "subjects": ["probe"], "storage": "file", "num_replicas": len(self.servers.ports)}
        return all("error" not in request(port, "$JS.API.STREAM.CREATE.probe", config) for port in self.servers.ports)

    def run(self):
        self.servers.start()
        wait_for(self.can_store, 30, "cluster")
        for place in range(3):
            proxies = [Proxy(port) for port in self.servers.ports]
            self.proxies.append(proxies)
            url = ",".join(f"nats://127.0.0.1:{proxy.port}" for proxy in proxies)
            daemon = Daemon(program("feedd"), self.directory, "abc"[place], url,
                            options=("--image-journal", "256K", "--log-timeout", "3s"))
            self.daemons.append(daemon)
        for daemon in self.daemons:
            daemon.start()

        def can_push():
            self.revive()
            return [daemon.connect().call("define", feed="list", kind="array") for daemon in self.daemons]
        wait_for(can_push, 60, "three daemons that store changes")
        workers = [(self.push, n) for n in range(3)] + [(self.watch, n) for n in range(4)]
        threads = [threading.Thread(target=call, args=(n,), daemon=True) for call, n in workers]
        threads.append(threading.Thread(target=self.verify, daemon=True))
        for thread in threads:
            thread.start()
        end, faults, omitted = time.monotonic() + self.seconds, 0, 0
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0.5, 3))
            kind, pause = self.fault()
            faults += 1
            omitted += pause == 0
            print(f"{faults}: {kind} for {pause:.1f} s; {len(self.acknowledged)} acknowledged, {len(self.refused)} refused, "
                  f"{self.resumed} resumed, {self.reset} reset", flush=True)
            self.revive()
            self.compare_copies()
        time.sleep(5)
        self.is_over = True
        for thread in threads:
            thread.join(60)
        self.compare()
        print(f"{faults - omitted} faults", flush=True)
        if omitted * 4 > faults:
            self.problem(f"{omitted} of {faults} faults were omitted, because a server lacked messages")

    def compare_copies(self):
        """Compares the messages that the servers keep, from their files."""
        copies = [nats_copies.copy(os.path.join(process.directory, "store"), "feedd_test") for process in self.servers.processes]
        place = nats_copies.difference(copies)
        if place is not None and not self.copies_differ:
            self.copies_differ = True
            self.problem(f"the copies of the servers differ from message {place} on; they have {nats_copies.summary(copies)}")

    def revive(self):
        """Starts daemons that ended with an error, as a service manager does."""
        for daemon in self.daemons:
            if not daemon.is_running():
                print(f"daemon {daemon.host} ended: {daemon.text()[-300:]}", flush=True)
                daemon.start()
                time.sleep(1)
        return all(daemon.is_running() for daemon in self.daemons)

    def compare(self):
        def clients_of_all():
            self.revive()
            return [daemon.connect() for daemon in self.daemons]
        clients = wait_for(clients_of_all, 90, "start of every daemon")
        for client in clients:
            wait_for(lambda: client.call("hello")["log"] == "connected", 60, "connection of every daemon")
        wait_for(lambda: clients[0].error("insert", feed="list", elements=[{"id": "end"}]) is None, 60, "storing")
        wait_for(lambda: len({c.call("verify", feed="list")["revision"] for c in clients}) == 1, 60, "one revision")
        answers = [client.call("verify", feed="list") for client in clients]
        if len({answer["digest"] for answer in answers}) != 1:
            self.problem(f"the members differ at the end: {answers}")
        names = []
        count = sum(answers[0]["counts"])
        for start in range(0, count, 2000):
            rows = clients[0].call("range", **{"feed": "list", "from": start, "count": 2000})
            names += [element["id"] for element in rows["elements"]]
        if len(names) != len(set(names)):
            self.problem(f"{len(names) - len(set(names))} elements are doubled")
        lost = self.acknowledged - set(names)
        if lost:
            self.problem(f"{len(lost)} acknowledged elements are lost: {sorted(lost)[:10]}")
        print(f"{len(names)} elements; {len(self.acknowledged)} acknowledged, {len(self.refused)} refused of which "
              f"{len(self.refused & set(names))} were stored, {len(self.unknown)} without an answer; "
              f"{len(self.digests)} revisions compared; {self.resumed} of {self.resumed + self.reset} watches resumed by delta, "
              f"{self.moves} after moving to another host", flush=True)

    def end(self):
        for daemon in self.daemons:
            daemon.resume()
            daemon.kill()
        self.servers.end()
        self.compare_copies()
        if self.problems:
            print(f"logs are in {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="faults in a group")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--without", action="append", choices=KINDS, metavar="FAULT",
                        help=f"leave out a fault: {', '.join(KINDS)} (default: those of servers older than 2.10.22 but their end)")
    options = parser.parse_args()
    without = options.without or ([] if nats_version() >= (2, 10, 22) else OF_NEW_SERVERS)
    left_out = f", without: {', '.join(without)}" if without else ""
    print(f"nats-server {'.'.join(map(str, nats_version()))}{left_out}, seed {options.seed}", flush=True)
    chaos = Chaos(options.seconds, options.seed, options.servers, without)
    try:
        chaos.run()
    finally:
        chaos.end()
    total = chaos.resumed + chaos.reset
    # A short run has too few for a share.
    if total >= 50 and chaos.resumed < 0.9 * total:
        chaos.problems.append(f"only {chaos.resumed} of {total} watches resumed by delta")
    for problem in chaos.problems:
        print(problem)
    sys.exit(1 if chaos.problems else 0)


if __name__ == "__main__":
    main()
