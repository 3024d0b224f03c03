#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""/openapi.json of memprof server: it is complete, and the server does what it says: each endpoint with each parameter,
with values that it allows and others, and each answer by its schema."""
import json
import re
import subprocess
import urllib.request

import jsonschema

import memprof_test as t
import server_test as s

DOCUMENT = t.ROOT + "/src/server/openapi.json"
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
# Values of which each kind of parameter takes some and refuses others.
PROBES = ("", "0", "10", "-1", "+1", "1.5", "0x1f", "0xg", "true", "false", "yes", "main", "50%", "%", "1m30s", "1 m", "100ms",
          "64k", "1.5MiB", "1x", "all", "only_leaked", "mmapped", "nonsense", "main(", "4294967296", "1795580835610",
          "18446744073709551616")


def resolve(document, x):
    while "$ref" in x:
        at = document
        for part in x["$ref"].removeprefix("#/").split("/"):
            at = at[part.replace("~1", "/").replace("~0", "~")]
        x = at
    return x


def plain_name(schema):
    """The name of the schema that is referred to."""
    return next((x["$ref"].rsplit("/", 1)[1] for x in walk(schema) if isinstance(x, dict) and "$ref" in x), "")


def plain(x):
    """A schema of OpenAPI 3.0 as JSON schema: what is nullable can be null."""
    if isinstance(x, list):
        return [plain(y) for y in x]
    if not isinstance(x, dict):
        return x
    out = {k: plain(v) for k, v in x.items() if k != "nullable"}
    return {"anyOf": [out, {"type": "null"}]} if x.get("nullable") is True else out


def walk(x):
    yield x
    for y in x.values() if isinstance(x, dict) else x if isinstance(x, list) else ():
        yield from walk(y)


class Document:
    def __init__(self, text):
        self.all = json.loads(text)
        self.paths = self.all["paths"]
        self.plain = plain(self.all)

    def operation(self, path):
        """(method, operation): each path has one."""
        (one,) = self.paths[path].items()
        return one

    def type(self, path):
        """The type of the answer for programs; only / has another one, for browsers."""
        one, *others = self.operation(path)[1]["responses"]["200"]["content"]
        assert not others or path == "/"
        return one

    def is_live(self, path):
        """Whether the endpoint is of a recording in progress."""
        return "live" in self.operation(path)[1]["tags"]

    def schema(self, x):
        """A schema whose references are found in the document."""
        return {**plain(x), "components": self.plain["components"]}

    def fits(self, value, schema):
        return jsonschema.Draft4Validator(self.schema(schema)).is_valid(value)

    def parameters(self, path, where="query"):
        """{name: schema} of the parameters, the properties of objects one by one."""
        found = {}
        for p in self.operation(path)[1].get("parameters", ()):
            p = resolve(self.all, p)
            schema = resolve(self.all, p["schema"])
            if p["in"] != where:
                continue
            if schema["type"] == "object":
                found.update(schema["properties"])
            else:
                found[p["name"]] = schema["items"] if schema["type"] == "array" else schema
        return found

    def flat(self, schema):
        """The schema with what it refers to."""
        schema = resolve(self.all, schema)
        for part in schema.get("allOf", ()):
            schema = {**self.flat(part), **schema}
        return schema

    def allows(self, text, schema):
        """Whether a parameter can have this value."""
        kind = self.flat(schema)
        value = text
        if kind["type"] == "integer":
            if not re.fullmatch("[0-9]+", text) or int(text) >= 1 << 64:
                return False
            value = int(text)
        elif kind["type"] == "boolean":
            value = {"true": True, "false": False}.get(text)
        elif kind.get("format") == "regex":
            return "(" not in text and not text.startswith("+")
        elif re.fullmatch("[0-9]+", text) and "pattern" in kind:
            # The server counts in 64 bits, durations in nanoseconds.
            if int(text) >= 1 << 64 or (plain_name(schema).startswith("Duration") and int(text) * 10**9 >= 1 << 64):
                return False
        return self.fits(value, schema)

    def examples(self, schema):
        kind = self.flat(schema)
        if "enum" in kind:
            return kind["enum"]
        if kind["type"] == "boolean":
            return ["true", "false"]
        if kind.get("maxLength") == 0:
            return [""]
        return [str(kind.get("example", kind.get("default", kind.get("minimum", "main"))))]


class OpenAPI(s.Case):
    """one recording"""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(DOCUMENT) as f:
            cls.document = Document(f.read())
        cls.id = re.findall("/data/([0-9a-f]{32})/", cls.server.get("/").text)[-1]

    def test_served(self):
        """the server sends the file of the repository"""
        a = self.get("/openapi.json")
        self.assertEqual(a.headers["Content-Type"], "application/json")
        self.assertEqual(a.body, t.read(DOCUMENT))

    def test_structure(self):
        """it is an OpenAPI 3.0 document: required members, references, names, templates of paths"""
        d = self.document.all
        self.assertRegex(d["openapi"], r"^3\.0\.\d$")
        self.assertLessEqual({"title", "version"}, set(d["info"]))
        used, operations = set(), []
        for x in walk(d):
            if isinstance(x, dict) and isinstance(x.get("$ref"), str):
                self.assertEqual(list(x), ["$ref"])
                self.assertTrue(resolve(d, x))
                used.add(x["$ref"])
        for kind, members in d["components"].items():
            for name in members:
                self.assertRegex(name, r"^[A-Za-z0-9._-]+$")
                self.assertTrue(kind == "securitySchemes" or f"#/components/{kind}/{name}" in used, name)
        for need in d["security"]:
            self.assertLessEqual(set(need), set(d["components"]["securitySchemes"]))
        for path, item in self.document.paths.items():
            self.assertLessEqual(set(item), METHODS, path)
            for operation in item.values():
                operations.append(operation["operationId"])
                self.assertEqual({x["name"] for x in d["tags"]} & set(operation["tags"]), set(operation["tags"]))
                self.assertLessEqual({"200", "4XX", "5XX"}, set(operation["responses"]))
                for response in operation["responses"].values():
                    self.assertTrue(resolve(d, response)["description"])
                given = [resolve(d, p) for p in operation.get("parameters", ())]
                keys = [(p["name"], p["in"]) for p in given]
                self.assertEqual(len(keys), len(set(keys)), path)
                self.assertEqual({p["name"] for p in given if p["in"] == "path"}, set(re.findall(r"{(\w+)}", path)))
                for p in given:
                    self.assertTrue(p["description"])
                    self.assertTrue(p["in"] != "path" or p["required"])
                    self.assertIn("schema", p)
        self.assertEqual(len(operations), len(set(operations)))
        for name, schema in self.document.plain["components"]["schemas"].items():
            jsonschema.Draft4Validator.check_schema(schema)
            for x in walk(d["components"]["schemas"][name]):
                if isinstance(x, dict) and x.get("type") == "object":
                    self.assertIn("additionalProperties", x, f"{name}: what it does not name must be an error")

    def test_complete(self):
        """every endpoint of the code is described, and nothing else; so is every filter of memprof report"""
        wanted = set()
        source = t.read(t.ROOT + "/src/server/endpoints.c").decode()
        rows = re.findall(r'^\s*{"([^"]*)",\s*(TYPE_\w+),\s*(READ_\w+|ASK_\w+),\s*([0FN |]+),', source, re.M)
        self.assertEqual(len(rows), 59)
        filters = set(re.findall(r"^  --([a-z-]+?)(?:-min, \.\.\.-max)? [A-Z]",
                                 self.memprof("report", "--help").stdout.split("Filters:")[1], re.M))
        types = dict(re.findall(r'^#define (TYPE_\w+)\s+"(.*)"', source + t.read(t.ROOT + "/src/server/endpoint.h").decode(), re.M))
        for name, type_, reading, flags in rows:
            path = ("/" if reading == "READ_NONE" else "/data/{id}/") + name
            wanted |= {path} | ({path + "/{filename}"} if "N" in flags else set())
            self.assertIn(path, self.document.paths)
            self.assertEqual(self.document.operation(path)[0], "post" if reading == "ASK_RECORDER" else "get", path)
            self.assertEqual(self.document.type(path), types[type_], path)
            mine = {re.sub("_(min|max)$", "", p).replace("_", "-") for p in self.document.parameters(path)}
            if "F" in flags:
                self.assertEqual(filters - mine - {"suppress"} -
                                 {"bytehound-group-leaked-allocations"}, set(), path)
            else:
                self.assertNotIn("arena", mine)
        self.assertEqual(wanted, set(self.document.paths))

    # ------------------------------------------------------------------ answers --

    def path(self, path):
        return (path.replace("{id}", self.id).replace("{filename}", "a name%20with.dots")
                .replace(" ", "%20").replace("{number}", self.real("backtraces") or "0"))

    def real(self, name):
        """A value of the recording for parameters that name something in it."""
        if not hasattr(type(self), "values"):
            some = self.data("allocations", {"count": 1}).json()["allocations"][0]
            maps = self.data("maps", {"count": 1}).json()["maps"]
            type(self).values = {"backtraces": str(some["backtrace_id"]), "thread": str(some["thread"]), "marker": "work",
                                 "from_map": str(maps[0]["id"]) if maps else "0", "file": "shop.cc",
                                 "alive_at": "100%", "alive_at_2": "100%"}  # halfway the work may not have begun
        return self.values.get(name)

    def required(self, path):
        """Parameters without which the endpoint refuses."""
        out = {}
        for p in self.document.operation(path)[1].get("parameters", ()):
            p = resolve(self.document.all, p)
            if p["in"] == "query" and p.get("required"):
                out[p["name"]] = self.real(p["name"]) or str(p["example"])
        return {**out, "at": "50%"} if "with_at" in self.document.parameters(path) else out

    def check(self, path, parameters):
        """Asks, and checks the answer by its schema."""
        a = self.get(self.path(path), parameters)
        content = self.document.operation(path)[1]["responses"]["200"]["content"]
        self.assertIn(a.headers["Content-Type"], content, path)
        schema = content[a.headers["Content-Type"]]["schema"]
        if "json" in a.headers["Content-Type"]:
            errors = list(jsonschema.Draft4Validator(self.document.schema(schema)).iter_errors(a.json()))
            self.assertEqual([], [f"{'/'.join(map(str, e.path))}: {e.message[:300]}" for e in errors[:5]], path)
        else:
            self.assertEqual(schema["type"], "string")
            self.assertTrue(a.body or set(parameters) - set(self.required(path)), path)

    def of_files(self):
        """Endpoints of recordings that are not in progress; without those of the page, if memprof was built without it."""
        return [p for p in self.document.paths
                if not self.document.is_live(p) and (s.has_page(self.server) or "/export/html" not in p)]

    def refused(self, path, parameters, name):
        a = self.get(self.path(path), parameters, status=400, method=self.document.operation(path)[0].upper())
        self.assertRegex(a.text, rf"\b{re.escape(name)}\b")
        self.assertRegex(a.headers["Content-Type"], "^text/plain")
        self.assertEqual(a.text.count("\n"), 1, a.text)

    def values_of(self, name, schema):
        real = self.real(name)
        return [real] if real else self.document.examples(schema)

    def single(self, path):
        """{name: schema} of the parameters to try one by one: the filters only of one endpoint, since they are the same of
        all."""
        filters = self.document.parameters("/data/{id}/regions")
        return {n: x for n, x in self.document.parameters(path).items()
                if path == "/data/{id}/allocations" or filters.get(n) != x}

    def wrong_costs(self, path):
        """Costs that a recording of allocations does not have; annotate shows only bytes."""
        return {"faulted", "faults", "major"} | ({"count", "temporary"} if path.endswith("/annotate") else set())

    def test_answers(self):
        """every endpoint: its answer, and that for each parameter, are as its schema says"""
        for path in self.of_files():
            with self.subTest(path=path):
                need = self.required(path)
                self.check(path, need)
                for name, schema in self.single(path).items():
                    for value in self.values_of(name, schema) if name not in need else ():
                        if value in self.wrong_costs(path):
                            self.refused(path, {**need, name: value}, name)
                        else:
                            self.check(path, {**need, name: value})

    def test_all_filters(self):
        """every endpoint that has filters takes all of them at once; here all allocations pass"""
        filters = self.document.parameters("/data/{id}/regions")
        wide = {"from": "0%", "to": "100%", "lifetime": "all", "custom_filter": "", "deallocation_backtraces": ""}
        for name in filters:
            if name.endswith("_min"):
                wide[name] = "0"
            elif name.endswith("_max"):
                wide[name] = "9223372036854775807" if name == "address_max" else "1000000000"
            elif name.endswith("_regex"):
                wide[name] = "no such name" if name.startswith("negative") else "."
        for path in self.of_files():
            with self.subTest(path=path):
                if filters.items() <= self.document.parameters(path).items():
                    self.check(path, {**self.required(path), **wide})
        self.assertEqual(self.data("allocations", wide).json()["total_count"], self.data("allocations").json()["total_count"])

    def test_refusals(self):
        """every endpoint: a value that a parameter cannot have, a parameter given twice, an unknown one; all are named"""
        for path in self.document.paths:
            with self.subTest(path=path):
                need = self.required(path)
                self.refused(path, {**need, "frobnicate": "1"}, "frobnicate")
                for name, schema in self.single(path).items():
                    bad = next((v for v in PROBES if not self.document.allows(v, schema)), None)
                    if bad is not None:
                        self.refused(path, {**need, name: bad}, name)
                    if not self.repeats(path, name):
                        v = need.get(name) or self.values_of(name, schema)[0]
                        self.refused(path, [*((k, w) for k, w in need.items() if k != name), (name, v), (name, v)], name)

    def repeats(self, path, name):
        given = [resolve(self.document.all, p) for p in self.document.operation(path)[1]["parameters"]]
        if name in ("alive_at_2", "custom_filter", "deallocation_backtraces"):
            return not path.endswith("/maps")  # another name of alive_at; and what says nothing
        return any(p["name"] == name and p["schema"].get("type") == "array" for p in given)

    def test_values(self):
        """the server takes exactly those values of a parameter that the document allows"""
        for path in ("/data/{id}/allocations", "/data/{id}/maps"):
            for name, schema in self.document.parameters(path).items():
                for value in PROBES if name != "from_map" else ():
                    a = self.server.get(self.path(path), {name: value})
                    want = 200 if self.document.allows(value, schema) else 400
                    self.assertEqual(a.status, want, f"{path} {name}={value!r}: {a.text[:200]}")

    def test_repeated(self):
        """a parameter that is an array can be given several times"""
        for path in self.of_files():
            for name, schema in self.document.parameters(path).items():
                if self.repeats(path, name) and name != "from_map":
                    values = (self.values_of(name, schema) * 2)[:2]
                    self.check(path, [*self.required(path).items(), *((name, v) for v in values)])

    # ------------------------------------------------------------------ everything else --

    def test_methods(self):
        """other methods: 405, which names those that are possible; HEAD: the headers of GET"""
        for path in self.document.paths:
            ours = self.document.operation(path)[0].upper()
            need = self.required(path)
            for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - {ours}:
                a = self.get(self.path(path), need, method=method, status=405)
                self.assertIn(ours, a.headers["Allow"].split(", "))
            if path in self.of_files():
                a = self.get(self.path(path), need, method="HEAD")
                self.assertEqual(a.body, b"")
                self.assertEqual(a.headers["Content-Type"], self.document.type(path))

    def test_not_running(self):
        """endpoints of a recording in progress: 409 if it has ended"""
        for path in filter(self.document.is_live, self.document.paths):
            method = self.document.operation(path)[0].upper()
            self.get(self.path(path), self.required(path), method=method, status=409)

    def test_unknown(self):
        """no such endpoint, recording or stack: 404; scripts: 501"""
        for path in ("/nothing", "/list/more", "/data", "/data/last", "/data/last/nothing", "/data/last/allocations/more",
                     "/data/last/backtrace", f"/data/{'0' * 32}/allocations", "/data/first/tree", "/data/last/mmaps",
                     "/data/last/backtrace/4000000000"):
            a = self.get(path, status=404)
            self.assertRegex(a.headers["Content-Type"], "^text/plain")
        self.assertEqual(self.get(f"/data/{'0' * 32}/allocations", status=404).text.strip(), "data not found")
        self.get("/data/last/backtrace/x", status=400)
        self.get("/data/last/export/flamegraph/a/b", status=404)
        for path in ("execute_script", "script_files/0/x.svg", "allocation_filter_to_script", "map_filter_to_script"):
            self.assertIn("script", self.data(path, status=501).text)

    def test_ends_at_once(self):
        """SIGTERM ends the server as it should as soon as it has printed its URL"""
        for _ in range(20):
            s.Server(*self.recordings).end()

    def test_limits(self):
        """a query or header that is too long, and a body, are refused"""
        self.data("allocations", {"function_regex": "x" * 20000}, status=414)
        self.get("/", status=431, headers={"X-Long": "x" * 100000})
        self.get("/", status=413, headers={"Content-Length": "2"}, body=b"{}")


class Sampled(OpenAPI):
    """two recordings, the last one a sample"""
    @classmethod
    def record_all(cls):
        shop = s.build(cls.shared)
        return [s.record(shop, cls.shared + "/shop.memprof"), s.record(shop, cls.shared + "/sample.memprof", "--sample", "64")]

    def check(self, path, parameters):
        if "/export/replay" in path:
            self.assertIn("sample", self.get(self.path(path), parameters, status=400).text)
        elif not self.is_absent(path, parameters):
            super().check(path, parameters)

    def is_absent(self, path, parameters):
        """Whether the function or file is not in the sample with these conditions."""
        return path.endswith(("/peek", "/annotate")) and self.server.get(self.path(path), parameters).status == 404

    test_structure = test_complete = test_served = test_methods = test_limits = test_refusals = test_values = None
    test_not_running = test_unknown = test_ends_at_once = None


class Faults(Sampled):
    """a recording of page faults"""
    @classmethod
    def record_all(cls):
        recording = cls.shared + "/faults.memprof"
        subprocess.run([t.MEMPROF, "run", "-q", "--event=page-faults", "-o", recording, "--", s.build(cls.shared)], check=True,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return [recording]

    def check(self, path, parameters):
        a = self.server.get(self.path(path), parameters)
        if a.status == 400:
            self.assertIn("page faults", a.text)
        elif a.status != 404:
            OpenAPI.check(self, path, parameters)

    def wrong_costs(self, path):
        return set()  # check() takes refusals

    test_all_filters = test_repeated = None


class Live(OpenAPI):
    """a recording in progress"""
    @classmethod
    def record_all(cls):
        recording = cls.shared + "/live.memprof"
        p = subprocess.Popen([f"{t.VICTIMS}/leaky"], stdout=subprocess.DEVNULL)
        cls.addClassCleanup(p.wait)
        cls.addClassCleanup(p.kill)
        t.settle(p.pid)
        cls.memprof_pid = p.pid
        memprof = subprocess.Popen([t.MEMPROF, "attach", "-q", "-p", str(p.pid), "-o", recording], stdout=subprocess.DEVNULL)
        cls.addClassCleanup(memprof.wait)
        cls.addClassCleanup(memprof.terminate)
        t.wait_for(lambda: s.recorded(p.pid) or memprof.poll() is not None)
        subprocess.run([t.MEMPROF, "flush", "-p", str(p.pid)], check=True, capture_output=True, timeout=120)
        return [recording]

    def real(self, name):
        return None

    def test_live(self):
        """answers of endpoints of a recording in progress, and of its requests, are as their schemas say"""
        paths = [p for p in self.document.paths if self.document.is_live(p)]
        for path in sorted(paths, key=lambda p: p.endswith("/detach")):
            method, operation = self.document.operation(path)
            if path.endswith("/events"):
                self.check_events(path)
                continue
            for name, schema in {None: None, **self.document.parameters(path)}.items():
                for value in self.document.examples(schema) if name else (None,):
                    need = self.required(path)
                    a = self.get(self.path(path), {**need, name: value} if name else need, method=method.upper())
                    content = operation["responses"]["200"]["content"][a.headers["Content-Type"]]
                    jsonschema.Draft4Validator(self.document.schema(content["schema"])).validate(a.json())

    def check_events(self, path):
        with urllib.request.urlopen(self.server.url + self.path(path), timeout=120) as answer:
            self.assertEqual(answer.headers["Content-Type"], self.document.type(path))
            for _ in range(2):
                self.assertEqual(answer.readline(), b"event: look\n")
                data = answer.readline()
                self.assertEqual(answer.readline(), b"\n")
                look = json.loads(data.removeprefix(b"data: "))
                schema = self.document.paths["/data/{id}/live"]["get"]["responses"]["200"]["content"]["application/json"]
                jsonschema.Draft4Validator(self.document.schema(schema["schema"])).validate(look)

    test_structure = test_complete = test_served = test_methods = test_limits = test_refusals = test_values = None
    test_not_running = test_unknown = test_answers = test_repeated = test_all_filters = None
    test_ends_at_once = None


if __name__ == "__main__":
    t.main()
