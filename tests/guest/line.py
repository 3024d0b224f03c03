# SPDX-License-Identifier: MIT OR Apache-2.0
"""Connections over a serial line, one after the other.  Emulated lines lose bytes now and then, also the end of a connection;
so each begins with a mark, and what came before it is forgotten.  Runs at both ends: in the guest by itself, with the path
of the line and the port to listen at."""
import os
import socket
import sys
import threading
import tty

MARK = b"\xf5a connection begins\xf5"


class Line:
    """@read, @write: of the serial line."""
    def __init__(self, read, write):
        self.read, self.write = read, write
        self.lock = threading.Lock()
        self.connection = None  # what comes over the line is for it

    def put(self, connection, data):
        """Sends what came from a connection, unless there is another one by now."""
        with self.lock:
            while data and connection is self.connection:
                data = data[self.write(data):]

    def begin(self, connection):
        """Takes what comes from a connection to the line, until it ends.  With the mark first."""
        with self.lock:
            self.connection = connection
        self.put(connection, MARK)
        try:
            while data := connection.recv(4096):
                self.put(connection, data)
        except OSError:
            pass  # it was replaced

    def receive(self, marked):
        """Takes what comes over the line to the connection.  marked() is called at each mark, and returns that."""
        connection, rest = None, b""
        while data := self.read(4096):
            *before, rest = (rest + data).split(MARK)
            for i, part in enumerate(before):
                self.give(connection, part)
                connection = marked()
            keep = next(n for n in range(len(MARK) - 1, -1, -1) if rest.endswith(MARK[:n]))
            self.give(connection, rest[:len(rest) - keep])
            rest = rest[len(rest) - keep:]

    @staticmethod
    def give(connection, data):
        try:
            if connection and data:
                connection.sendall(data)
        except OSError:
            pass  # the mark of the next one follows


def guest(path, port):
    fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(fd)
    line = Line(lambda n: os.read(fd, n), lambda data: os.write(fd, data))
    listener = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=line.receive, args=(lambda: line.connection,), daemon=True).start()
    print("listens", flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            line.begin(connection)


if __name__ == "__main__":
    guest(sys.argv[1], int(sys.argv[2]))
