#!/usr/bin/env python3
"""Measures a group of two hosts beside Redis Streams and etcd, all on this machine and with elements of 200 bytes: pushes a
second with 256 unanswered, and the time from a push on one host to the delta on the other one.

usage: compare.py [--servers N] [--feedbench PATH] [--only NAME]...

The programs are those of FEEDD_BIN_DIR; use release builds.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import time

from group_processes import Daemon, Process, Servers, can_connect, free_ports, program, temporary, wait_for

PAYLOAD = "x" * 150
ROUNDS = 2000


def percentiles(seconds):
    ordered = sorted(seconds)
    return (f"p50 {ordered[len(ordered) // 2] * 1e6:.0f} µs, "
            f"p99 {ordered[len(ordered) * 99 // 100] * 1e6:.0f} µs")


def element(place):
    return {"id": place % 100, "n": place, "text": PAYLOAD}


def group(directory, count, feedbench):
    servers = Servers(os.path.join(directory, f"group{count}"), count)
    servers.start()
    daemons = [Daemon(program("feedd"), directory, f"{name}{count}", servers.url) for name in "ab"]
    for daemon in daemons:
        daemon.start()
        daemon.ready().close()
    pusher, watcher = daemons[0].connect(), daemons[1].connect()
    pusher.call("define", feed="x", kind="collection", id="$.id", bins=[{"name": "all"}])
    wait_for(lambda: watcher.call("describe", feed="x"), 10, "feed")
    watcher.call("watch", feed="x")
    watcher.notification()
    times = []
    for place in range(300 + ROUNDS):
        start = time.perf_counter()
        number = pusher.send("update", feed="x", element=element(place), result="counts")
        watcher.notification()
        if place >= 300:
            times.append(time.perf_counter() - start)
        pusher.answer(number)
    watcher.close()
    done = subprocess.run(
        [feedbench, "socket", "--socket", daemons[0].path, "--count", "200000", "--watchers", "1", "--window", "256",
         "--snapshot", "0", "--runs", "3"], capture_output=True, text=True)
    rate = re.search(r"([0-9.]+) M updates/s", done.stdout)
    print(f"feedd, group of 2 hosts, {count} server(s): {float(rate.group(1)) * 1e6 if rate else 0:,.0f} pushes/s; "
          f"{percentiles(times)}", flush=True)
    for daemon in daemons:
        daemon.end()
    servers.end()


def redis(directory):
    port = free_ports(1)[0]
    server = Process(
        ["redis-server", "--port", str(port), "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
         "--dir", directory], directory, "redis")
    server.start()
    wait_for(lambda: can_connect(port), 10, "redis-server")

    def connect():
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def command(*words):
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)

    reader, writer = connect(), connect()
    times = []
    for place in range(300 + ROUNDS):
        reader.sendall(command(b"XREAD", b"BLOCK", b"0", b"STREAMS", b"s", b"$"))
        time.sleep(0.0003)
        text = json.dumps(element(place)).encode()
        start = time.perf_counter()
        writer.sendall(command(b"XADD", b"s", b"*", b"e", text))
        reader.recv(1 << 16)
        if place >= 300:
            times.append(time.perf_counter() - start)
        writer.recv(1 << 16)
    done = subprocess.run(
        ["redis-benchmark", "-p", str(port), "-c", "1", "-P", "256", "-n", "400000", "--csv", "XADD", "t", "MAXLEN", "~",
         "100000", "*", "e", json.dumps(element(1))], capture_output=True, text=True)
    rate = re.findall(r'"([0-9.]+)"', done.stdout.splitlines()[-1] if done.stdout else "")
    print(f"Redis Streams, one server, append-only file every second: {float(rate[0]) if rate else 0:,.0f} XADD/s; "
          f"{percentiles(times)}", flush=True)
    server.end()


def etcd(directory):
    client, peer = free_ports(2)
    url = f"http://127.0.0.1:{client}"
    server = Process(
        ["etcd", "--data-dir", os.path.join(directory, "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
         "--listen-peer-urls", f"http://127.0.0.1:{peer}"], directory, "etcd")
    server.start()
    wait_for(lambda: can_connect(client), 20, "etcd")
    time.sleep(2)
    import base64

    def encoded(text):
        return base64.b64encode(text.encode()).decode()

    watch = subprocess.Popen(
        ["etcdctl", "--endpoints", url, "watch", "k"], stdout=subprocess.PIPE, env={**os.environ, "ETCDCTL_API": "3"})
    time.sleep(1)
    sock = socket.create_connection(("127.0.0.1", client))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = json.dumps({"key": encoded("k"), "value": encoded(json.dumps(element(1)))})
    request = (f"POST /v3/kv/put HTTP/1.1\r\nHost: e\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
               + body).encode()
    times = []
    for place in range(200 + ROUNDS // 4):
        start = time.perf_counter()
        sock.sendall(request)
        for _ in range(3):
            watch.stdout.readline()
        if place >= 200:
            times.append(time.perf_counter() - start)
        sock.recv(1 << 16)
    watch.kill()
    path = os.path.join(directory, "body")
    with open(path, "w") as file:
        file.write(body)
    done = subprocess.run(
        ["h2load", "--h1", "-n", "20000", "-c", "256", "-t", "1", "-d", path, "-H", "Content-Type: application/json",
         url + "/v3/kv/put"], capture_output=True, text=True)
    rate = re.search(r"([0-9.]+) req/s", done.stdout)
    print(f"etcd, one server, synced: {float(rate.group(1)) if rate else 0:,.0f} puts/s; {percentiles(times)}", flush=True)
    server.end()


def main():
    parser = argparse.ArgumentParser(description="figures of a group")
    parser.add_argument("--feedbench", default=program("feedbench"))
    parser.add_argument("--only", action="append")
    options = parser.parse_args()
    directory = temporary()
    try:
        for name, measure in (("one", lambda: group(directory, 1, options.feedbench)),
                              ("three", lambda: group(directory, 3, options.feedbench)),
                              ("redis", lambda: redis(directory)), ("etcd", lambda: etcd(directory))):
            if options.only and name not in options.only:
                continue
            measure()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
