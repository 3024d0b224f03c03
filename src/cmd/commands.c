/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cmd/commands.h"

#include "cmd/cmd.h"

const struct command commands[] = {
    {"attach", cmd_attach, "record a running process; leave it as it was"},
    {"detach", cmd_detach, "end a recording; repair a process whose recorder died"},
    {"flush", cmd_flush, "write everything recorded so far to the file"},
    {"mark", cmd_mark, "put a named mark into a recording"},
    {"pause", cmd_pause, "stop recording new allocations"},
    {"resume", cmd_resume, "continue recording after a pause"},
    {"status", cmd_status, "list the processes that have a session"},
    {"top", cmd_top, "watch the heap of a running process, live, in the terminal"},
    {"run", cmd_run, "start a program and record it from its first instruction"},
    {"leaks", cmd_leaks, "find blocks of a running process that nothing points to any more"},
    {"heap", cmd_heap, "list what is live in a running process, and what its memory consists of"},
    {"doctor", cmd_doctor, "check whether this machine, and a process, can be profiled"},
    {"report", cmd_report, "print a recording: text, JSON, flame graph, tree, folded stacks"},
    {"server", cmd_server, "serve recordings over HTTP: bytehound's REST API and more"},
    {"gather", cmd_gather, "receive recordings that other machines send (attach --to)"},
    {"diff", cmd_diff, "print what grew between two recordings, or two moments of one"},
    {"info", cmd_info, "print what was recorded and what the recording contains"},
    {"verify", cmd_verify, "check that a recording is complete and undamaged"},
    {"strip", cmd_strip, "make a smaller recording: short-lived blocks become sums"},
    {"merge", cmd_merge, "join the pieces of a recording, or the recordings of several processes"},
    {"extract", cmd_extract,
     "write modules, maps, symbols and the like of a recording as CSV files"},
    {"symbolize", cmd_symbolize, "make a copy with symbols, or with names removed"},
    {0},
};
