# SPDX-License-Identifier: MIT OR Apache-2.0
"""Benchmarks on real programs: wall time and CPU time, in seconds, of a command that does fixed work."""
import json
import os
import re
import subprocess
import tempfile
import time

import tools

MAIN = ["none", "memprof", "memprof --sample", "heaptrack"]

PYTHON = """
import json
words = [str(i * 7919 %% 100003) for i in range(60000)]
for turn in range(%d):
    table = {}
    for w in words:
        table.setdefault(w[:3], []).append({"word": w, "length": len(w)})
    text = json.dumps(table)
    assert len(json.loads(text)) == len(table)
"""
SQL = """
create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < %d)
insert into t select i, hex(i * 7919) || 'abc', i / 3.0 from n;
create index tb on t(b);
select count(*), sum(length(b || a)) from t where b like '%%7%%';
select substr(b, 1, 2), group_concat(a) from t group by 1 limit 1;
"""


def python(folder, quick):
    return ["/usr/bin/python3", "-c", PYTHON % (2 if quick else 6)], {"PYTHONMALLOC": "malloc"}


def jq(folder, quick):
    with open(folder + "/in.json", "w") as f:
        json.dump([{"id": i, "name": f"n{i * 7919}", "tags": [i % 7, i % 11, "x" * (i % 30)]}
                   for i in range(20000 if quick else 80000)], f)
    return ["jq", "[.[] | select(.id % 3 == 0) | {name, n: (.tags | length)}] | length",
            folder + "/in.json"], {}


def sqlite3(folder, quick):
    return ["sqlite3", ":memory:", SQL % (60000 if quick else 250000)], {}


PROGRAMS = {"python3": python, "jq": jq, "sqlite3": sqlite3}
CASES = {name: MAIN for name in list(PROGRAMS) + ["redis"]}


def program(name, tool, build, quick):
    t = tools.TOOLS[tool]
    with tempfile.TemporaryDirectory(prefix="memprof-bench-") as folder:
        argv, env = PROGRAMS[name](folder, quick)
        _, use = tools.run(tools.Tool(t.name, t.command, dict(t.env, **env)), argv, folder, build)
        return dict(use, **t.bytes_and_losses(folder, build))


def server_cpu(sock):
    """CPU seconds that the server process has used."""
    info = subprocess.run(["redis-cli", "-s", sock, "info", "server"], text=True,
                          capture_output=True, check=True).stdout
    with open(f"/proc/{re.search(r'process_id:([0-9]+)', info).group(1)}/stat") as f:
        ticks = f.read().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def redis(tool, build, quick):
    """Requests per second of a server that runs under the tool; memprof attaches to a running server."""
    t = tools.TOOLS[tool]
    with tempfile.TemporaryDirectory(prefix="memprof-bench-") as folder:
        sock = folder + "/socket"
        argv = ["redis-server", "--port", "0", "--unixsocket", sock, "--save", "", "--dir", folder]
        attach = tool.startswith("memprof")
        p = subprocess.Popen(argv if attach else t.command(argv, folder, build),
                             env=dict(os.environ, **t.env), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
        recorder = None
        try:
            while not os.path.exists(sock):
                time.sleep(0.05)
            time.sleep(0.5)
            if attach:
                options = t.command([], folder, build)[2:-1]
                recorder = subprocess.Popen([build + "/memprof", "attach", "-p", str(p.pid),
                                             *options], stdout=subprocess.DEVNULL)
                time.sleep(1)
            requests = 50000 if quick else 150000
            cpu = server_cpu(sock)
            text = subprocess.run(["redis-benchmark", "-s", sock, "-q", "-t", "set,lpush", "-r",
                                   "10000", "-n", str(requests)],
                                  text=True, capture_output=True, check=True).stdout
            cpu = server_cpu(sock) - cpu
            if recorder:
                subprocess.run([build + "/memprof", "detach", "-p", str(p.pid)], check=True,
                               stdout=subprocess.DEVNULL)
                recorder.wait(timeout=60)
            subprocess.run(["redis-cli", "-s", sock, "shutdown", "nosave"], capture_output=True)
            p.wait(timeout=60)
        finally:
            for q in (recorder, p):
                if q and q.poll() is None:
                    q.kill()
                    q.wait()
        rates = [float(x) for x in re.findall(r"([\d.]+) requests per second", text)]
        return dict({"requests_per_s": sum(rates) / len(rates),
                     "server_cpu_us": cpu * 1e6 / (2 * requests)},
                    **t.bytes_and_losses(folder, build))


def once(name, tool, build, quick):
    return redis(tool, build, quick) if name == "redis" else program(name, tool, build, quick)
