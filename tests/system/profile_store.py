# SPDX-License-Identifier: MIT OR Apache-2.0
"""A store of profiles for the tests of --push."""
import gzip
import http.server
import threading


class Store(http.server.ThreadingHTTPServer):
    """Keeps the requests that it gets.  answers: what it does with the next ones: a status, and headers."""
    daemon_threads = True

    def __init__(self, port=0):
        self.requests, self.answers, self.changed = [], [], threading.Condition()
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.server_port}"

    def wait(self, n):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.requests) >= n, 120):
                raise AssertionError(f"{len(self.requests)} requests came, not {n}")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        with self.server.changed:
            status, headers, answer = self.server.answers.pop(0) if self.server.answers else (200, {}, b"")
            self.server.requests.append((status, self.path, dict(self.headers), body))
            self.server.changed.notify_all()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass
