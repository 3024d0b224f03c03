# SPDX-License-Identifier: MIT OR Apache-2.0
"""Both roles of the protocol of doc/streaming.md, written from that document alone, and a relay between them.  Tests
use them to be a sender for memprof gather, and a receiver for memprof attach --to."""
import contextlib
import hashlib
import hmac
import os
import socket
import struct
import threading
import time

SENDER, RECEIVER = b"MEMPROF>", b"MEMPROF<"
VERSION = 1
OPEN, DATA, END, PING, CANCEL, ACK, DONE, FAIL = 1, 2, 3, 4, 5, 16, 17, 18
HELLO, PROOF, HEAD, CODE, ID = 48, 32, 20, 16, 16
MOST = 65536
TIMEOUT = 120


class Closed(Exception):
    """The other side has closed the connection."""


class Refused(Exception):
    """The receiver has answered with FAIL."""


class Wrong(Exception):
    """The other side has broken the protocol."""


def hmac_of(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def hello(magic, version=VERSION, zero=0, random=None):
    return magic + struct.pack("<II", version, zero) + (random or os.urandom(32))


def secret(token, what, hellos):
    return hmac_of(token, b"memprof stream 1: " + what + hellos)


def frame(key, number, kind, offset=0, payload=b"", length=None):
    """@length: what the head says, if that is not the length of the payload."""
    head = struct.pack("<IIIQ", kind, len(payload) if length is None else length, number, offset)
    return head + payload + hmac_of(key, head + payload)[:CODE]


def stop(s):
    """Ends the connection of a socket, or a listener, which the thread that uses it then closes: if another thread
    closed it, that thread could continue with the next socket, which gets the same descriptor."""
    with contextlib.suppress(OSError):
        s.shutdown(socket.SHUT_RDWR)


def end(s):
    """Ends the connection of a socket that no other thread uses, and closes it."""
    stop(s)
    s.close()


def receive(s, n):
    data = b""
    while len(data) < n:
        try:
            more = s.recv(n - len(data))
        except (ConnectionError, BrokenPipeError) as e:
            raise Closed(str(e)) from e
        except socket.timeout as e:
            raise Wrong(f"nothing was received for {TIMEOUT} s") from e
        except OSError as e:
            raise Closed(str(e)) from e
        if not more:
            raise Closed(f"after {len(data)} of {n} bytes")
        data += more
    return data


def receive_all(s):
    """Return: what comes until the other side closes the connection."""
    data = b""
    with contextlib.suppress(Closed):
        while True:
            data += receive(s, 1)
    return data


def receive_frame(s, key, number):
    """Return: (type, offset, payload)."""
    head = receive(s, HEAD)
    kind, length, got, offset = struct.unpack("<IIIQ", head)
    if length > MOST:
        raise Wrong(f"a payload of {length} bytes")
    payload = receive(s, length)
    if not hmac.compare_digest(receive(s, CODE), hmac_of(key, head + payload)[:CODE]):
        raise Wrong(f"the code of frame {number}, type {kind}")
    if got != number:
        raise Wrong(f"frame {got} instead of {number}")
    return kind, offset, payload


class Sender:
    """Sends a recording.  open(), data(), end() and answer() are what a correct sender does; send() and frame() are
    for those that do something else."""
    def __init__(self, host, port, token, id=None, name="s.memprof"):
        self.address, self.token = (host, port), token
        self.id, self.name = id or os.urandom(ID), name if isinstance(name, bytes) else name.encode()
        self.socket = None
        self.left = None  # bytes until the connection is cut

    def connect(self):
        self.close()
        self.socket = socket.create_connection(self.address, timeout=TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self.answers = 0
        return self

    def cut_after(self, n):
        """The connection is cut when it has sent exactly n bytes; the call that would send more raises Closed."""
        self.left = n

    def send(self, data):
        """Sends any bytes."""
        cut = self.left is not None and len(data) > self.left
        if self.left is not None:
            data = data[:self.left]
            self.left -= len(data)
        try:
            self.socket.sendall(data)
        except OSError as e:
            raise Closed(str(e)) from e
        if cut:
            self.left = None
            self.close()
            raise Closed("by the test")

    def hello(self, magic=SENDER, **how):
        mine = hello(magic, **how)
        self.send(mine)
        theirs = receive(self.socket, HELLO)
        if theirs[:16] != RECEIVER + struct.pack("<II", VERSION, 0):
            raise Wrong(f"hello {theirs}")
        self.hellos = mine + theirs

    def proof(self):
        self.send(secret(self.token, b"sender", self.hellos))
        if receive(self.socket, PROOF) != secret(self.token, b"receiver", self.hellos):
            raise Wrong("the receiver's proof")
        self.keys()

    def keys(self):
        self.key = secret(self.token, b"data", self.hellos)
        self.answer_key = secret(self.token, b"answers", self.hellos)

    def greet(self):
        """Connects, unless it is connected, and exchanges hellos and proofs."""
        if not self.socket:
            self.connect()
        self.hello()
        self.proof()
        return self

    def frame(self, kind, offset=0, payload=b"", number=None, length=None, key=None):
        """The next frame, which counts as sent; what is given explicitly can be wrong."""
        made = frame(key or self.key, self.number if number is None else number, kind, offset, payload, length)
        self.number += 1
        return made

    def open(self, first=0):
        """Greets, and sends OPEN.  @first: of the first byte that the sender still has.  Return: how many bytes the
        receiver has."""
        self.greet()
        self.send(self.frame(OPEN, first, self.id + self.name))
        kind, offset, payload = self.answer()
        if kind == FAIL:
            raise Refused(payload.decode())
        if kind != ACK:
            raise Wrong(f"type {kind} answers OPEN")
        return offset

    def data(self, offset, data):
        self.send(self.frame(DATA, offset, data))

    def end(self, length):
        self.send(self.frame(END, length))

    def ping(self):
        self.send(self.frame(PING))

    def cancel(self):
        self.send(self.frame(CANCEL))

    def answer(self):
        """Return: the next answer, (type, offset, payload)."""
        got = receive_frame(self.socket, self.answer_key, self.answers)
        self.answers += 1
        if got[0] not in (ACK, DONE, FAIL) or (got[0] == FAIL) != bool(got[2]) or (got[0] == FAIL and got[1]):
            raise Wrong(f"answer {got}")
        return got

    def acked(self, n):
        """Waits until n bytes are acknowledged; returns how many are."""
        while True:
            kind, offset, payload = self.answer()
            if kind == FAIL:
                raise Refused(payload.decode())
            if kind != ACK:
                raise Wrong(f"answer of type {kind} before the end")
            if offset >= n:
                return offset

    def closed(self):
        """Waits until the receiver closes the connection; returns the answers before that."""
        found = []
        with contextlib.suppress(Closed):
            while True:
                found.append(self.answer())
        self.close()
        return found

    def closed_early(self):
        """The same before the proof of the receiver, or instead of it; returns the bytes before that."""
        found = receive_all(self.socket)
        self.close()
        return found

    def finish(self, length):
        """Sends END, and waits until the recording is complete."""
        self.end(length)
        while True:
            kind, offset, payload = self.answer()
            if kind == DONE:
                if offset != length:
                    raise Wrong(f"DONE at {offset} instead of {length}")
                return
            if kind == FAIL:
                raise Refused(payload.decode())

    def more(self, content, at, to, step=MOST):
        """Sends content[at:to]."""
        for i in range(at, to, step):
            self.data(i, content[i:min(i + step, to)])

    def deliver(self, content, step=MOST, first=0):
        """Opens, and sends what the receiver does not have, and the end.  Return: where it continued."""
        begun = self.open(first)
        self.more(content, begun, len(content), step)
        self.finish(len(content))
        self.close()
        return begun

    def close(self):
        if self.socket:
            end(self.socket)
        self.socket = None


class Receiver:
    """Receives recordings at a port of 127.0.0.1, one connection at a time, and keeps them in memory.  A test sets the
    attributes below at any time.  What the sender does wrong is in errors."""
    def __init__(self, token):
        self.token = token
        self.acks = True  # False: DATA and PING are not answered
        self.answers = True  # False: nothing is answered, also not OPEN
        self.fail = None  # text of FAIL, the answer to the next OPEN or DATA and all after that
        self.less = 0  # acknowledges so many bytes less than it has; also at OPEN, and the sender sends them again
        self.close_at = None  # closes once: "accept", "hello", "proof", OPEN, END, ("data", bytes of the recording)
        self.impostor = False  # does not know the token, so that its proof is wrong
        self.files, self.names, self.done = {}, {}, set()  # bytearrays and names by id; ids that are complete
        self.lost = set()  # ids whose file is forgotten when the sender opens it again
        self.connections = self.refused = self.again = self.failed = self.cancelled = 0
        self.told = None  # what a sender has sent to an impostor
        self.errors = []
        self.acknowledged = {}
        self.socket = self.listener = None
        self.port = 0
        self.ended = False
        self.threads = []
        self.back()

    def back(self):
        """Listens, after away() at the same port."""
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        t = threading.Thread(target=self.accept, args=(self.listener,), daemon=True)
        self.threads.insert(0, t)
        t.start()

    def away(self):
        """Ends the connection; until back() new ones are refused."""
        stop(self.listener)
        self.drop()
        self.threads[0].join(TIMEOUT)
        self.drop()  # a connection that was accepted meanwhile

    def drop(self):
        """Ends the connection."""
        if self.socket:
            stop(self.socket)

    def forget(self, id):
        """Loses the file at the next OPEN."""
        self.lost.add(id)
        self.drop()

    def end(self):
        self.ended = True
        self.away()
        for t in self.threads:
            t.join(TIMEOUT)

    def only(self):
        """The bytes of the only recording."""
        content, = self.files.values()
        return bytes(content)

    def accept(self, listener):
        while True:
            try:
                s, _ = listener.accept()
            except OSError:
                listener.close()
                return
            self.connections += 1
            before, self.socket = self.socket, s
            if before:
                stop(before)
                self.threads[-1].join(TIMEOUT)
            t = threading.Thread(target=self.connection, args=(s,), daemon=True)
            self.threads.append(t)
            t.start()

    def connection(self, s):
        try:
            s.settimeout(TIMEOUT)
            self.serve(s)
        except Closed:
            pass
        except Wrong as e:
            self.errors.append(str(e))
        except OSError:
            pass
        finally:
            end(s)

    def closes(self, where):
        if self.close_at == where:
            self.close_at = None
            raise Closed("by the test")

    def serve(self, s):
        self.closes("accept")
        mine = hello(RECEIVER)
        s.sendall(mine)
        theirs = receive(s, HELLO)
        if theirs[:16] != SENDER + struct.pack("<II", VERSION, 0):
            raise Wrong(f"hello {theirs}")
        self.closes("hello")
        hellos = theirs + mine
        proof = receive(s, PROOF)
        if self.impostor:
            s.sendall(os.urandom(PROOF))
            self.told = receive_all(s)
            return
        if proof != secret(self.token, b"sender", hellos):
            self.refused += 1
            return
        self.closes("proof")
        s.sendall(secret(self.token, b"receiver", hellos))
        Answers(self, s, secret(self.token, b"data", hellos), secret(self.token, b"answers", hellos)).run()


class Answers:
    """The frames of one connection of a Receiver."""
    def __init__(self, receiver, s, key, answer_key):
        self.r, self.socket, self.key, self.answer_key = receiver, s, key, answer_key
        self.sent = 0

    def answer(self, kind, offset=0, payload=b""):
        if self.r.answers:
            self.socket.sendall(frame(self.answer_key, self.sent, kind, offset, payload))
            self.sent += 1

    def fail_if_told(self):
        text = self.r.fail
        if text is not None:
            self.r.failed += 1
            self.answer(FAIL, 0, text.encode())
            raise Closed("after FAIL")

    def ack(self, at):
        """Acknowledges bytes, never fewer than before."""
        r = self.r
        at = max(r.acknowledged.get(self.id, 0), at - r.less)
        r.acknowledged[self.id] = at
        self.answer(ACK, at)
        return at

    def open(self):
        r = self.r
        kind, first, payload = receive_frame(self.socket, self.key, 0)
        if kind != OPEN or len(payload) < ID:
            raise Wrong(f"the first frame has type {kind} and {len(payload)} bytes")
        self.id = payload[:ID]
        if self.id in r.lost:
            r.lost.discard(self.id)
            r.files.pop(self.id, None)
            r.acknowledged.pop(self.id, None)
        if r.names.setdefault(self.id, payload[ID:]) != payload[ID:]:
            raise Wrong("the name of the recording has changed")
        if first > r.acknowledged.get(self.id, 0) and self.id in r.files:
            raise Wrong(f"bytes before {first} are gone, and {r.acknowledged.get(self.id, 0)} were acknowledged")
        self.began = self.id not in r.files
        self.content = r.files.setdefault(self.id, bytearray())
        r.closes(OPEN)
        self.fail_if_told()
        self.at = self.ack(len(self.content))
        return first

    def take(self, offset, payload):
        """Bytes that it has already must be the same."""
        if offset != self.at or not payload:
            raise Wrong(f"{len(payload)} bytes at {offset} instead of {self.at}")
        known = self.content[self.at:self.at + len(payload)]
        if payload[:len(known)] != known:
            raise Wrong(f"other bytes at {offset} than before")
        self.r.again += len(known)
        self.content += payload[len(known):]
        self.at += len(payload)

    def run(self):
        r, number = self.r, 1
        self.open()
        while True:
            kind, offset, payload = receive_frame(self.socket, self.key, number)
            number += 1
            if kind == DATA:
                self.fail_if_told()
                self.take(offset, payload)
                if isinstance(r.close_at, tuple) and len(self.content) >= r.close_at[1]:
                    r.closes(r.close_at)
                if r.acks:
                    self.ack(self.at)
            elif kind == PING and not offset and not payload:
                if r.acks:
                    self.ack(self.at)
            elif kind == END and not payload and offset == len(self.content) == self.at:
                r.closes(END)
                self.fail_if_told()
                r.done.add(self.id)
                self.answer(DONE, offset)
            elif kind == CANCEL and not offset and not payload and self.id not in r.done:
                r.cancelled += 1
                if self.began:
                    del r.files[self.id], r.names[self.id]
                return
            else:
                raise Wrong(f"frame of type {kind} at {offset}, {len(payload)} bytes, when {self.at} were received")
            if self.id in r.done and kind not in (END, PING):
                raise Wrong(f"frame of type {kind} after the end")


class Proxy:
    """Relays TCP connections to a receiver, and breaks them as a test says."""
    def __init__(self, port, host="127.0.0.1"):
        self.target = (host, port)
        self.cuts = []  # for each of the next connections: cut after so many bytes of the sender; None: not
        self.flips = []  # for each of the next connections: change a bit of this byte of the sender; None: not
        self.delay = 0  # seconds, before each piece is passed on
        self.paused = False  # reads nothing
        self.connections = self.cut = 0
        self.pairs = []
        self.ended = False
        self.threads = []
        self.port = 0
        self.back()

    def back(self):
        """Accepts connections, after refuse() at the same port."""
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        self.accepting = self.thread(self.accept, self.listener)

    def refuse(self):
        """Refuses new connections; existing ones continue."""
        stop(self.listener)
        self.accepting.join(TIMEOUT)

    def drop(self):
        """Cuts all connections at both sides."""
        for a, b in self.pairs:
            stop(a)
            stop(b)
        self.pairs = []

    def end(self):
        self.ended = True
        self.refuse()
        self.drop()
        for t in self.threads:
            t.join(TIMEOUT)

    def thread(self, what, *args):
        t = threading.Thread(target=what, args=args, daemon=True)
        self.threads.append(t)
        t.start()
        return t

    def accept(self, listener):
        while True:
            try:
                a, _ = listener.accept()
            except OSError:
                listener.close()
                return
            cut = self.cuts.pop(0) if self.cuts else None
            flip = self.flips.pop(0) if self.flips else None
            self.connections += 1
            try:
                b = socket.create_connection(self.target, timeout=TIMEOUT)
            except OSError:
                end(a)
                continue
            b.settimeout(None)
            for s in (a, b):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.pairs.append((a, b))
            self.thread(self.connection, a, b, cut, flip)

    def connection(self, a, b, cut, flip):
        back = self.thread(self.relay, b, a)
        self.relay(a, b, cut, flip)
        back.join(TIMEOUT)
        end(a)
        end(b)

    def relay(self, source, sink, cut=None, flip=None):
        n = 0
        try:
            while cut is None or n < cut:
                while self.paused and not self.ended:
                    time.sleep(0.01)
                data = source.recv(MOST if cut is None else min(MOST, cut - n))
                if not data:
                    break
                if flip is not None and n <= flip < n + len(data):
                    data = data[:flip - n] + bytes([data[flip - n] ^ 1]) + data[flip - n + 1:]
                time.sleep(self.delay)
                sink.sendall(data)
                n += len(data)
            else:
                self.cut += 1
        except OSError:
            pass
        finally:
            stop(source)
            stop(sink)
