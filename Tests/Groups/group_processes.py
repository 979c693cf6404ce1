"""NATS servers and daemons for the tests of groups, each in a directory of its own."""

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time


def nats_server():
    """The path of the nats-server that FEEDD_NATS_SERVER names, by default of the installed one, which only root has in its PATH;
    None if there is none."""
    named = os.environ.get("FEEDD_NATS_SERVER")
    if named:
        return named
    return shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def nats_version():
    """The version of that server, such as (2, 9, 10)."""
    text = subprocess.run([nats_server(), "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in re.search(r"v(\d+)\.(\d+)\.(\d+)", text).groups())


def free_ports(count):
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for sock in sockets:
        sock.bind(("127.0.0.1", 0))
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


class Process:
    """A child process that can be killed, stopped and started again."""

    def __init__(self, arguments, directory, name, environment=None):
        self.arguments, self.directory, self.name = arguments, directory, name
        self.environment = {**os.environ, **(environment or {})}
        self.process = None
        self.is_stopped = False

    def start(self):
        with open(os.path.join(self.directory, self.name + ".log"), "ab") as output:
            self.process = subprocess.Popen(
                self.arguments, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=self.environment)
        self.is_stopped = False

    def signal(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def stop(self):
        """Stops the process, and waits until each of its threads has stopped."""
        self.signal(signal.SIGSTOP)
        self.is_stopped = True
        while self.is_running() and not all(state in "TtZX" for state in self.states()):
            time.sleep(0.001)

    def states(self):
        directory = f"/proc/{self.process.pid}/task"
        for task in os.listdir(directory):
            try:
                with open(f"{directory}/{task}/stat") as file:
                    yield file.read().rpartition(")")[2].split()[0]
            except OSError:
                pass

    def resume(self):
        self.signal(signal.SIGCONT)
        self.is_stopped = False

    def kill(self):
        self.signal(signal.SIGKILL)
        self.wait()

    def end(self):
        self.resume()
        self.signal(signal.SIGTERM)
        self.wait()

    def wait(self, seconds=20):
        if not self.process:
            return
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def text(self):
        with open(os.path.join(self.directory, self.name + ".log"), errors="replace") as file:
            return file.read()


class Servers:
    """One NATS server with JetStream, or a cluster of several. `extra` is more text of their configurations, for all or for each,
    `domain` that of JetStream, and `routed` gives the port at which one server reaches the routes of another one: it takes the places
    of both and the port of the other one."""

    def __init__(self, directory, count=1, extra="", no_advertise=False, domain=None, routed=None):
        self.ports = free_ports(count)
        routes = free_ports(count)
        self.processes = []
        for place in range(count):
            home = os.path.join(directory, f"nats{place}")
            os.makedirs(home, exist_ok=True)
            text = f'port: {self.ports[place]}\nhost: 127.0.0.1\nserver_name: n{place}\n'
            text += f'jetstream {{ store_dir: "{home}/store"\n max_file_store: 4GB\n'
            text += f" domain: {domain} }}\n" if domain else " }\n"
            text += f"{extra if isinstance(extra, str) else extra[place]}\n"
            if count > 1:
                reached = routes
                if routed:
                    # One connects to the other: a server may close both of two connections, each as the second one.
                    places = [(place + step) % count for step in range(1, count // 2 + 1)]
                    reached = [routed(place, other, routes[other]) for other in places]
                others = ", ".join(f"nats://127.0.0.1:{port}" for port in reached)
                text += f'cluster {{ name: test\n listen: 127.0.0.1:{routes[place]}\n routes: [{others}]\n'
                # Otherwise the servers tell each other addresses that go around `routed`.
                text += ' advertise: "127.0.0.1:1"\n' if routed else ""
                text += ' no_advertise: true }\n' if no_advertise else ' }\n'
            with open(os.path.join(home, "server.conf"), "w") as file:
                file.write(text)
            self.processes.append(Process([nats_server(), "-c", os.path.join(home, "server.conf")], home, "nats"))

    @property
    def url(self):
        return ",".join(f"nats://127.0.0.1:{port}" for port in self.ports)

    def start(self):
        for process in self.processes:
            process.start()
        for port in self.ports:
            wait_for(lambda: can_connect(port), 20, "nats-server")
        if len(self.processes) > 1:
            wait_for(lambda: any("JetStream cluster new metadata leader" in p.text() or "metadata leader" in p.text()
                                 for p in self.processes), 30, "a JetStream leader")

    def end(self):
        for process in self.processes:
            process.resume()
            process.kill()


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            value = condition()
            if value:
                return value
        except (OSError, ConnectionError, RuntimeError):
            pass
        time.sleep(0.02)
    raise TimeoutError(f"no {what} within {seconds} s")


class Client:
    """A connection to a daemon: requests, and the notifications of watches."""

    def __init__(self, path, timeout=30):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.buffer = b""
        self.number = 0
        self.notifications = []

    def send(self, method, **params):
        self.number += 1
        text = json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}).encode()
        self.socket.sendall(struct.pack(">I", len(text)) + text)
        return self.number

    def receive(self):
        while True:
            if len(self.buffer) >= 4:
                length = struct.unpack(">I", self.buffer[:4])[0]
                if len(self.buffer) >= 4 + length:
                    frame = self.buffer[4:4 + length]
                    self.buffer = self.buffer[4 + length:]
                    return json.loads(frame)
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the daemon closed the connection")
            self.buffer += data

    def answer(self, number):
        while True:
            message = self.receive()
            if message.get("id") == number:
                return message
            self.notifications.append(message)

    def call(self, method, **params):
        message = self.answer(self.send(method, **params))
        if "error" in message:
            raise RuntimeError(json.dumps(message["error"]))
        return message["result"]

    def error(self, method, **params):
        return self.answer(self.send(method, **params)).get("error")

    def notification(self):
        if self.notifications:
            return self.notifications.pop(0)
        return self.receive()

    def close(self):
        self.socket.close()

    def __del__(self):
        if hasattr(self, "socket"):
            self.close()


class Daemon(Process):
    """A daemon that is a member of a group."""

    def __init__(self, program, directory, name, url, group="test", options=(), environment=None):
        home = os.path.join(directory, name)
        os.makedirs(home, exist_ok=True)
        self.host = name
        self.path = os.path.join(home, "s")
        self.state = os.path.join(home, "state")
        super().__init__(
            [program, "--socket", self.path, "--state", self.state, "--group", group, "--log", url,
             "--group-host", name, *options], home, "feedd", environment)

    def connect(self, timeout=30):
        return Client(self.path, timeout)

    def ready(self, seconds=30):
        return wait_for(lambda: self.connect(), seconds, f"daemon {self.name} in {self.directory}")


def program(name):
    """The path of a program in the directory that FEEDD_BIN_DIR names, by default the one of a debug build."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    directory = os.environ.get("FEEDD_BIN_DIR", os.path.join(root, ".build/debug"))
    return os.path.join(directory, name)


def temporary():
    return tempfile.mkdtemp(prefix="feedd-group-")


# MARK: A few lines of the NATS protocol

def publish(port, subject, payload):
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.recv(4096)
        sock.sendall(b'CONNECT {"verbose":false}\r\n')
        sock.sendall(f"PUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\nPING\r\n")
        while b"PONG" not in sock.recv(4096):
            pass


def request(port, subject, body, seconds=5):
    payload = json.dumps(body).encode() if body else b""
    with socket.create_connection(("127.0.0.1", port), seconds) as sock:
        file = sock.makefile("rb")
        file.readline()
        sock.sendall(b'CONNECT {"verbose":false}\r\nSUB reply 1\r\n')
        sock.sendall(f"PUB {subject} reply {len(payload)}\r\n".encode() + payload + b"\r\n")
        while True:
            line = file.readline()
            if not line:
                raise ConnectionError("the server closed the connection")
            if line.startswith(b"PING"):
                sock.sendall(b"PONG\r\n")
            if line.startswith(b"MSG"):
                return json.loads(file.read(int(line.split()[-1])))
