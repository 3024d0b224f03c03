#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""memprof attach --push and --metrics: what stores get, decoded by programs that are not memprof's, are the program's own numbers,
window by window; a store that fails costs nothing but its own profiles, and these are counted."""
import base64
import email.parser
import email.policy
import glob
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.parse
import urllib.request

import memprof_test as t
from profile_store import Store

MODULES = os.environ.get("PUSH_MODULES", t.ROOT + "/build/npm")
TYPES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def decode(case, proto, kind, body):
    f = case.path("message")
    with open(f, "wb") as out:
        out.write(body)
    r = subprocess.run(["node", t.ROOT + "/tests/push/decode.mjs", MODULES, f"{t.ROOT}/tests/push/{proto}.proto", kind, f],
                       capture_output=True, text=True, check=False)
    case.assertEqual(r.returncode, 0, r.stderr)
    return json.loads(r.stdout)


def flood(p):
    """Has the program allocate.  Return: its numbers since its start."""
    p.stdin.write("go\n")
    p.stdin.flush()
    return json.loads(p.stdout.readline())


class Window:
    """A window of any protocol: values {type: {stack, leaf first: number}}, start and end in ns."""

    def __init__(self, start, end):
        self.start, self.end, self.values = start, end, {}

    def total(self, kind):
        return sum(self.values[kind].values())

    def of(self, kind, function):
        return sum(n for stack, n in self.values[kind].items() if function in stack)


def pprof_window(case, packed):
    """Reads a profile by go tool pprof."""
    f = case.path("profile.pb.gz")
    with open(f, "wb") as out:
        out.write(packed)
    raw = subprocess.run(["go", "tool", "pprof", "-raw", f], capture_output=True, text=True, check=True).stdout
    head, rest = raw.split("\nSamples:\n")
    names, rest = rest.split("\n", 1)
    samples, rest = rest.split("Locations\n")
    locations = {int(n): re.findall(r"(?:M=\d+ )?(\S+) \S*:\d+:?\d* s=", text) for n, text in
                 re.findall(r"^ *(\d+): 0x[0-9a-f]+ (.*(?:\n {10,}.*)*)", rest.split("Mappings\n")[0], re.M)}
    when = re.search(r"^Time: (.*)$", head, re.M)
    case.assertTrue(when, head)
    seconds = re.search(r"^Duration: ([\d.]+)", head, re.M)
    w = Window(when[1], seconds and float(seconds[1]))
    kinds = [k.split("/")[0] for k in re.findall(r"\w+/\w+", names)]
    w.values = {k: {} for k in kinds}
    for values, ids in re.findall(r"^ *([\d ]+): ([\d ]+?) *$", samples, re.M):
        stack = tuple(name for i in ids.split() for name in locations.get(int(i), []))
        for kind, n in zip(kinds, values.split()):
            w.values[kind][stack] = w.values[kind].get(stack, 0) + int(n)
    w.units = dict(k.split("/") for k in re.findall(r"\w+/\w+", names))
    return w


def otlp_window(case, body):
    """Reads a request of OpenTelemetry.  Return: the window, the attributes of the resource."""
    r = decode(case, "otlp", "otlp.ExportProfilesServiceRequest", body)
    d = r["dictionary"]
    text = d["string_table"]
    case.assertEqual(text[0], "")
    resource, = r["resource_profiles"]
    scope, = resource["scope_profiles"]
    case.assertEqual(scope["scope"]["name"], "memprof")

    def value(v):
        return v.get("string_value") or int(v.get("int_value", 0))

    def attributes(of):
        return {text[d["attribute_table"][i]["key_strindex"]]: value(d["attribute_table"][i]["value"])
                for i in of["attribute_indices"]}

    def frames(location):
        at = d["location_table"][location]
        if at["mapping_index"]:
            m = d["mapping_table"][at["mapping_index"]]
            case.assertLessEqual(int(m["memory_start"]), int(at["address"]))
            case.assertLess(int(at["address"]), int(m["memory_limit"]))
            # Each mapping must have one of them.
            case.assertRegex(attributes(m)["process.executable.build_id.htlhash"], "^[0-9a-f]{32}$")
        return [text[d["function_table"][line["function_index"]]["name_strindex"]] for line in at["lines"]]

    w, ids = None, set()
    for p in scope["profiles"]:
        kind = text[p["sample_type"]["type_strindex"]]
        case.assertEqual(text[p["sample_type"]["unit_strindex"]], "bytes" if kind.endswith("space") else "count")
        ids.add(p["profile_id"])
        start = int(p["time_unix_nano"])
        w = w or Window(start, start + int(p["duration_nano"]))
        case.assertEqual((w.start, w.end), (start, start + int(p["duration_nano"])))
        w.values[kind] = {}
        for s in p["samples"]:
            stack = tuple(f for i in d["stack_table"][s["stack_index"]]["location_indices"] for f in frames(i))
            number, = s["values"]
            w.values[kind][stack] = w.values[kind].get(stack, 0) + int(number)
    case.assertEqual(len(ids), len(scope["profiles"]))
    w.mappings = [attributes(m) | {"file": text[m["filename_strindex"]]} for m in d["mapping_table"][1:]]
    w.lines = sum(len(at["lines"]) for at in d["location_table"])
    return w, {a["key"]: value(a["value"]) for a in resource["resource"]["attributes"]}


@t.unittest.skipUnless(shutil.which("go") and shutil.which("node"), "no go or no node")
class Push(t.Case):
    def setUp(self):
        super().setUp()
        self.store = Store()
        self.addCleanup(self.store.server_close)
        self.addCleanup(self.store.shutdown)

    def push(self, pid, *options, every="1s"):
        p = self.start(t.MEMPROF, "attach", "-p", str(pid), "--every", every, *options, stderr=subprocess.PIPE)
        self.assertIn("pushing a profile of each process every", p.stdout.readline())
        self.assertIn(f"recording process {pid} ", p.stdout.readline())
        return p

    def end(self, p, status=0):
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=120)
        self.assertEqual(p.returncode, status, err)
        return out, err

    def record(self, *options):
        """Records three rounds of a program, some windows apart.  Return: its numbers, those before, output, errors."""
        p = self.victim("flood", 1, 1000, stdin=subprocess.PIPE)
        before, found = flood(p), t.identity(p.pid)
        rec = self.push(p.pid, *options)
        for _ in range(3):
            truth = flood(p)
            n = len(self.store.requests)
            self.store.wait(n + 1)
        out, err = self.end(rec)
        left = t.identity(p.pid)
        for what in ("text", "fds", "tasks", "signals"):
            self.assertEqual(left[what], found[what], what)
        self.pid = p.pid
        return {k: truth[k] - before[k] for k in truth}, out, err

    def check(self, windows, truth):
        """The windows follow one another, and have together what the program did."""
        self.assertGreaterEqual(len(windows), 3)
        self.assertEqual(sum(w.total("alloc_objects") for w in windows), truth["mallocs"])
        self.assertEqual(sum(w.total("alloc_space") for w in windows), truth["bytes"])
        self.assertEqual(windows[-1].total("inuse_space"), truth["live_bytes"])
        self.assertEqual(windows[-1].total("inuse_objects"), 3 * 16)
        # Allocations are those of a window; what is live is as of its end.
        self.assertEqual(sum(w.of("alloc_objects", "flood") for w in windows), truth["mallocs"])
        self.assertLess(max(w.total("alloc_objects") for w in windows), truth["mallocs"])

    def test_otlp(self):
        truth, _, err = self.record("--push", f"otlp+http://{self.store.address}", "--label", "service.name=shop",
                                    "--label", "deployment.environment.name=test")
        self.assertEqual(err.count("memprof:"), 0, err)
        windows = []
        for _, path, headers, body in self.store.requests:
            self.assertEqual(path, "/v1development/profiles")
            self.assertEqual(headers["Content-Type"], "application/x-protobuf")
            w, attributes = otlp_window(self, body)
            windows.append(w)
        self.check(windows, truth)
        for one, other in zip(windows, windows[1:]):
            self.assertEqual(one.end, other.start)
        self.assertEqual(attributes["service.name"], "shop")
        self.assertEqual(attributes["deployment.environment.name"], "test")
        self.assertEqual(attributes["process.pid"], self.pid)
        self.assertEqual(attributes["process.executable.name"], "flood")
        self.assertEqual(attributes["host.name"], os.uname().nodename)
        found = {m["file"]: m for m in windows[-1].mappings}
        build_id = subprocess.run(["readelf", "-n", t.VICTIMS + "/flood"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(found[os.path.realpath(t.VICTIMS + "/flood")]["process.executable.build_id.gnu"],
                         re.search(r"Build ID: (\w+)", build_id)[1])

    def test_no_symbols(self):
        """only addresses leave the machine"""
        truth, _, _ = self.record("--push", f"otlp+http://{self.store.address}", "--no-symbols")
        windows = [otlp_window(self, body)[0] for *_, body in self.store.requests]
        self.assertEqual(sum(w.total("alloc_objects") for w in windows), truth["mallocs"])
        self.assertTrue(all(m["process.executable.build_id.gnu"] for m in windows[-1].mappings))
        self.assertEqual(sum(w.lines for w in windows), 0)
        self.assertFalse([1 for *_, body in self.store.requests if b"flood.c" in body])

    def test_pyroscope(self):
        truth, _, _ = self.record("--push", f"pyroscope+http://{self.store.address}/base/", "--label", "a.b-c=d")
        windows = []
        for _, path, headers, body in self.store.requests:
            self.assertEqual((path, headers["Content-Type"]), ("/base/push.v1.PusherService/Push", "application/proto"))
            series, = decode(self, "pyroscope", "push.PushRequest", body)["series"]
            labels = {pair["name"]: pair["value"] for pair in series["labels"]}
            self.assertEqual((labels["__name__"], labels["__delta__"], labels["service_name"], labels["a_b_c"]),
                             ("memory", "false", "flood", "d"))
            sample, = series["samples"]
            windows.append(pprof_window(self, base64.b64decode(sample["raw_profile"])))
            self.assertEqual(windows[-1].units, {k: "bytes" if k.endswith("space") else "count" for k in TYPES})
        self.check(windows, truth)

    def test_ingest(self):
        truth, _, _ = self.record("--push", f"pyroscope+http://{self.store.address}/ingest")
        windows = []
        for _, path, headers, body in self.store.requests:
            url = urllib.parse.urlparse(path)
            query = {k: v for k, (v,) in urllib.parse.parse_qs(url.query).items()}
            self.assertEqual((url.path, query["format"]), ("/ingest", "pprof"))
            self.assertRegex(query["name"], r"^flood\{.*process_pid=\d+.*\}$")
            self.assertLess(int(query["from"]), int(query["until"]))
            message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
                b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + body)
            parts = {p.get_param("name", header="content-disposition"): p.get_payload(decode=True)
                     for p in message.iter_parts()}
            config = json.loads(parts["sample_type_config"])
            self.assertEqual({k for k in config if config[k].get("cumulative") is False}, {"alloc_objects", "alloc_space"})
            windows.append(pprof_window(self, parts["profile"]))
        self.check(windows, truth)

    def test_parca(self):
        truth, _, _ = self.record("--push", f"parca+http://{self.store.address}")
        windows = []
        for _, path, headers, body in self.store.requests:
            self.assertEqual((path, headers["Content-Type"]), ("/profiles/writeraw", "application/json"))
            both = [pprof_window(self, base64.b64decode(s["samples"][0]["rawProfile"])) for s in json.loads(body)["series"]]
            # What has a duration is a difference, what has none a state.
            self.assertEqual([sorted(w.values) for w in both], [["alloc_objects", "alloc_space"],
                                                               ["inuse_objects", "inuse_space"]])
            self.assertEqual([bool(w.end) for w in both], [True, False])
            both[0].values.update(both[1].values)
            windows.append(both[0])
        self.check(windows, truth)

    def test_directory(self):
        """a directory gets a file for each window, which only its owner can read"""
        d = self.path("profiles")
        truth, out, _ = self.record("--push", d, "--push", f"otlp+http://{self.store.address}")
        files = sorted(glob.glob(d + "/*"))
        self.assertTrue(all(re.fullmatch(rf"flood-{self.pid}-\d{{8}}T\d{{6}}\.\d{{3}}Z\.pb\.gz", os.path.basename(f))
                            for f in files), files)
        self.assertEqual({os.stat(f).st_mode & 0o777 for f in files}, {0o600})
        self.assertIn(f"pushed {len(files)} profiles", out)
        self.check([pprof_window(self, t.read(f)) for f in files], truth)

    def test_retries(self):
        """a store that fails for a while gets every window, in order, and once"""
        self.store.answers = [(503, {"Retry-After": "1"}, b""), (429, {"Retry-After": "1"}, b"slow down")]
        truth, out, err = self.record("--push", f"otlp+http://{self.store.address}")
        self.assertIn("HTTP status 503", err)
        self.assertIn("again", err)
        windows = [otlp_window(self, body)[0] for status, *_, body in self.store.requests if status == 200]
        self.check(windows, truth)
        self.assertIn(f"pushed {len(windows)} profiles", out)
        for one, other in zip(windows, windows[1:]):
            self.assertEqual(one.end, other.start)

    def test_rejected(self):
        """a profile that the store does not want is not sent again, and counted; the reason is printed"""
        self.store.answers = [(400, {}, b"no such tenant"),
                              (200, {}, bytes.fromhex("0a0b08041207746f6f206f6c64"))]
        _, _, err = self.record("--push", f"otlp+http://{self.store.address}")
        self.assertIn("HTTP status 400: no such tenant", err)
        self.assertIn("rejected 4 profiles: too old", err)
        self.assertIn("the stores rejected 2 profiles", err)

    def test_spool(self):
        """what a store that is away does not take is sent by the next --push to it"""
        p = self.victim("flood", 1, 1000, stdin=subprocess.PIPE)
        before = flood(p)
        spool = self.path("spool")
        address = self.store.address
        self.store.shutdown()
        self.store.server_close()
        rec = self.push(p.pid, "--push", f"otlp+http://{address}", "--spool", spool)
        truth = flood(p)
        _, err = self.end(rec)
        self.assertRegex(err, rf"cannot push to http://{re.escape(address)}/v1development/profiles: ")
        self.assertRegex(err, rf"waiting in {re.escape(spool)}: [1-9]\d* profiles?; ")
        files = [os.path.join(d, f) for d, _, names in os.walk(spool) for f in names]
        self.assertTrue(files)
        self.assertEqual({os.stat(f).st_mode & 0o777 for f in files}, {0o600})
        again = Store(int(address.split(":")[1]))
        self.addCleanup(again.server_close)
        self.addCleanup(again.shutdown)
        rec = self.push(p.pid, "--push", f"otlp+http://{address}", "--spool", spool)
        again.wait(len(files) + 1)
        self.end(rec)
        windows = [otlp_window(self, body)[0] for *_, body in again.requests]
        self.assertEqual(sum(w.total("alloc_objects") for w in windows), truth["mallocs"] - before["mallocs"])
        self.assertFalse([f for d, _, names in os.walk(spool) for f in names])

    def test_secrets(self):
        """credentials come from a file or the environment, and are in no message"""
        secret = "Bearer 5ecret"
        f = self.path("headers")
        with open(f, "w", encoding="ascii") as out:
            out.write(f"# for the store\nAuthorization: {secret}\nX-Scope-OrgID: shop\n")
        _, out, err = self.record("--push", f"pyroscope+http://{self.store.address}", "--push-headers", f)
        self.assertEqual({(h["Authorization"], h["X-Scope-OrgID"]) for _, _, h, _ in self.store.requests},
                         {(secret, "shop")})
        self.assertNotIn("5ecret", out + err)
        self.store.requests.clear()
        os.environ["MEMPROF_PUSH_AUTHORIZATION"] = secret
        self.addCleanup(os.environ.pop, "MEMPROF_PUSH_AUTHORIZATION", None)
        self.record("--push", f"pyroscope+http://{self.store.address}")
        self.assertEqual({h["Authorization"] for _, _, h, _ in self.store.requests}, {secret})

    def test_hung(self):
        """a store that answers nothing makes neither the process nor the end of the command wait"""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            p = self.victim("flood", 1, 1000, stdin=subprocess.PIPE)
            rec = self.push(p.pid, "--push", f"otlp+http://127.0.0.1:{silent.getsockname()[1]}")
            client, _ = silent.accept()
            flood(p)
            out, err = self.end(rec)
            client.close()
            self.assertRegex(out, r"pushed [1-9]\d* profiles?")
            self.assertRegex(err, r"[1-9]\d* profiles? lost")

    def test_full_disk(self):
        """a directory that is full costs profiles, which are counted, and no more"""
        d = self.path("small")
        os.mkdir(d)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", d], check=True)
        try:
            with open(d + "/other", "wb") as out:
                out.write(bytes(8192))
            _, out, err = self.record("--push", d, "--push", f"otlp+http://{self.store.address}")
            self.assertEqual(os.listdir(d), ["other"])
        finally:
            subprocess.run(["umount", d], check=True)
        self.assertRegex(err, rf"cannot push to {d}: No space left on device")
        pushed = int(re.search(r"pushed (\d+) profiles", out)[1])
        self.assertEqual(int(re.search(r"(\d+) profiles lost", err)[1]), pushed)

    def test_estimates(self):
        """estimates say that they are, and how exact"""
        self.record("--push", f"otlp+http://{self.store.address}", "--sample", "256", "--push", self.path("d"))
        notes = {}
        for *_, body in self.store.requests:
            r = decode(self, "otlp", "otlp.ExportProfilesServiceRequest", body)
            text = r["dictionary"]["string_table"]
            for p in r["resource_profiles"][0]["scope_profiles"][0]["profiles"]:
                self.assertEqual((text[p["period_type"]["type_strindex"]], p["period"]), ("space", "256"))
                for i in p["attribute_indices"]:
                    a = r["dictionary"]["attribute_table"][i]
                    notes.setdefault(text[p["sample_type"]["type_strindex"]], {})[text[a["key_strindex"]]] = \
                        int(a["value"]["int_value"])
        self.assertEqual(set(notes), {"inuse_space", "inuse_objects"})
        self.assertGreater(notes["inuse_space"]["memprof.live_bytes_standard_error"], 0)
        last = sorted(glob.glob(self.path("d") + "/*"))[-1]
        text = subprocess.run(["go", "tool", "pprof", "-comments", last], capture_output=True, text=True, check=True).stdout
        self.assertIn("memprof.live_bytes_standard_error=", text)
        # The command line of a process can have passwords.
        self.assertNotIn("flood 1 1000", text)

    def test_wrong(self):
        """what cannot be meant is refused before the process is touched"""
        p = self.victim("flood", 1, 10, stdin=subprocess.PIPE)
        for options, message in ((("--push", "http://127.0.0.1:4318"), "does not say which protocol"),
                                 (("--push", "otlp+http://user:secret@127.0.0.1"), "--push-headers"),
                                 (("--push", "otlp+ftp://127.0.0.1"), "neither http"),
                                 (("--push", "otlp+http://"), "has no host"),
                                 (("--continuous",), "needs --push"),
                                 (("--push", "/tmp/x", "--every", "0.5s"), "--every"),
                                 (("--push", "/tmp/x", "--label", "=x"), "--label"),
                                 (("--push", "/tmp/x", "--to", "a"), "--to cannot be used with --push"),
                                 (("--push", "otlp+http://a", "--push-headers", "/nonexistent"), "/nonexistent"),
                                 (("--push", "/tmp/x", "--continuous", "-o", "x"), "--continuous"),
                                 (("--push", "/tmp/x", "--cull", "1s"), "--cull needs -o"),
                                 (("--push", "/tmp/x", "--via=kernel"), "--via=kernel cannot be used with --push"),
                                 (("--metrics", "port"), "--metrics"),
                                 (("--metrics", "203.0.113.1:9464"), "cannot listen"),
                                 (("--metrics", "1", "--background"), "--background")):
            err = self.memprof("attach", "-p", p.pid, *options, status=1 if "listen" in message else 2).stderr
            self.assertIn(message, err)
            self.assertNotIn("secret", err)

    def test_no_libcurl(self):
        """without libcurl, a URL is refused before the process is touched; a directory is not"""
        p = self.victim("flood", 1, 10, stdin=subprocess.PIPE)
        found = t.identity(p.pid)
        hide = "; ".join(f"mount --bind /dev/null {f}" for f in glob.glob("/usr/lib/*/libcurl*.so.4.*"))
        for to, status in (("otlp+http://127.0.0.1:1", 1), (self.path("d"), 0)):
            r = subprocess.run(["unshare", "-m", "sh", "-ec", hide + '; exec "$@"', "sh", t.MEMPROF, "attach", "-p", str(p.pid),
                                "--push", to, "--for", "1s"], capture_output=True, text=True, check=False)
            self.assertEqual(r.returncode, status, r.stderr)
            self.assertEqual("install libcurl4" in r.stderr, status == 1, r.stderr)
            self.assertEqual("recording process" in r.stdout, status == 0, r.stderr)
        self.assertEqual(t.identity(p.pid)["text"], found["text"])

    def test_ended(self):
        """the process is killed: the command ends, and the last profile has what happened until then"""
        p = self.victim("flood", 1, 1000, stdin=subprocess.PIPE)
        before = flood(p)
        rec = self.push(p.pid, "--push", f"otlp+http://{self.store.address}", every="1h")
        truth = flood(p)
        p.kill()
        p.wait(60)
        out, err = rec.communicate(timeout=120)
        self.assertEqual((out, rec.returncode), (f"process {p.pid} (flood) has ended\npushed 1 profile\n", 0), err)
        (*_, body), = self.store.requests
        w, _ = otlp_window(self, body)
        self.assertEqual(w.total("alloc_objects"), truth["mallocs"] - before["mallocs"])
        self.assertEqual(w.of("inuse_space", "flood"), truth["live_bytes"] - before["live_bytes"])


@t.unittest.skipUnless(shutil.which("prometheus"), "no prometheus")
class Metrics(t.Case):
    def metrics(self, url):
        """Return: {name: value}, of a scrape; promtool accepts it."""
        with urllib.request.urlopen(url, timeout=60) as r:
            self.assertEqual(r.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            text = r.read().decode()
        r = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        return {name: float(value) for name, value in re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", text, re.M)}

    def begin(self, *options):
        """Return: what a process did while it was recorded, its recorder, the URL of the metrics."""
        p = self.victim("flood", 1, 1000, stdin=subprocess.PIPE)
        before = flood(p)
        rec = self.start(t.MEMPROF, "attach", "-p", str(p.pid), "--metrics", "0", *options, stderr=subprocess.PIPE)
        url = re.search(r"metrics at (http://127\.0\.0\.1:\d+/metrics)$", rec.stdout.readline().rstrip())[1]
        self.assertIn(f"recording process {p.pid} ", rec.stdout.readline())
        after = flood(p)
        return {k: after[k] - before[k] for k in after}, rec, url

    def end(self, rec):
        rec.send_signal(signal.SIGINT)
        _, err = rec.communicate(timeout=120)
        self.assertEqual(rec.returncode, 0, err)

    def test_numbers(self):
        """a scrape has the sums of now, though nothing is pushed"""
        truth, rec, url = self.begin()
        # A thread's last frees come a moment later.
        t.wait_for(lambda: self.metrics(url)["memprof_frees_total"] == truth["frees"])
        m = self.metrics(url)
        self.assertEqual(m["memprof_allocations_total"], truth["mallocs"])
        self.assertEqual(m["memprof_live_bytes"], truth["live_bytes"])
        self.assertEqual(m["memprof_allocated_bytes_total"], truth["bytes"])
        self.assertEqual((m["memprof_lost_events_total"], m["memprof_thinned_allocations_total"]), (0, 0))
        self.assertGreater(m["memprof_recorder_cpu_seconds_total"], 0)
        self.assertGreater(m["memprof_recorder_resident_bytes"], 1 << 20)
        self.assertGreater(t.wait_for(lambda: self.metrics(url).get("memprof_process_resident_bytes")), 1 << 20)
        self.assertLess(m["memprof_look_age_seconds"], 10)
        self.assertFalse([name for name in m if "push" in name])
        self.end(rec)

    def test_pushes(self):
        """what stores took and what they did not is counted; the limit of the cost is told"""
        store = Store()
        self.addCleanup(store.server_close)
        self.addCleanup(store.shutdown)
        store.answers = [(400, {}, b"no")]
        _, rec, url = self.begin("--push", f"otlp+http://{store.address}", "--every", "1s", "--overhead", "2%")
        store.wait(3)
        m = self.metrics(url)
        self.assertEqual(m["memprof_push_rejected_total"], 1)
        self.assertGreaterEqual(m["memprof_push_windows_total"], 2)
        self.assertGreaterEqual(m["memprof_push_sent_total"], 1)
        self.assertEqual(m["memprof_overhead_limit_ratio"], 0.02)
        self.end(rec)

    def test_requests(self):
        """requests other than GET /metrics are refused; idle clients do not block others"""
        _, rec, url = self.begin()
        port = int(url.split(":")[2].split("/")[0])
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
        for request, status in ((b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", b"405"),
                                (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"404"),
                                (b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"200")):
            with socket.create_connection(("127.0.0.1", port)) as c:
                c.sendall(request)
                self.assertEqual(c.recv(4096).split()[1], status)
        with socket.create_connection(("127.0.0.1", port)) as c: # one that does not wait for its answer
            c.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertIn("memprof_live_bytes", self.metrics(url))
        for c in idle:
            c.close()
        self.end(rec)

    def test_prometheus(self):
        """Prometheus scrapes it, and has no series for a stack"""
        truth, rec, url = self.begin()
        config = self.path("prometheus.yml")
        with open(config, "w", encoding="ascii") as out:
            json.dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [
                {"job_name": "memprof", "static_configs": [{"targets": [url.split("/")[2]]}]}]}, out)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.start("prometheus", "--config.file=" + config, "--storage.tsdb.path=" + self.path("series"),
                   f"--web.listen-address=127.0.0.1:{port}", stderr=subprocess.DEVNULL)

        def query(what):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?" +
                                            urllib.parse.urlencode({"query": what}), timeout=60) as r:
                    return json.load(r)["data"]["result"]
            except OSError:
                return []

        found, = t.wait_for(lambda: query("memprof_allocations_total"))
        t.wait_for(lambda: float(query("memprof_allocations_total")[0]["value"][1]) == truth["mallocs"])
        self.assertEqual(found["metric"]["service"], "flood")
        self.assertEqual(set(found["metric"]), {"__name__", "instance", "job", "pid", "service"})
        self.assertEqual(query("up")[0]["value"][1], "1")
        self.end(rec)


if __name__ == "__main__":
    t.main()
