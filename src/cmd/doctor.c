/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "cmd/cmd.h"
#include "cmd/options/process.h"
#include "control/doctor/doctor.h"
#include "export/text/terminal.h"
#include "lib/hex.h"
#include "lib/json_gen.h"
#include "lib/open_files.h"
#include "lib/printable.h"

#define INDENT 26 /* columns before the text of a finding */

static const char help[] =
    "usage: memprof doctor [-p PID | -n NAME] [-o FILE] [--json]\n"
    "Checks whether this machine, and this process, can be profiled, and says what to do about\n"
    "what is missing.  The process is not stopped and not changed.\n"
    "  -p, --pid PID      the process\n"
    "  -n, --name NAME    the process with this name\n"
    "  -o, --output FILE  where the recording would be written (default: the current directory)\n"
    "      --json         as JSON, with the functions that would be hooked and all mapped files\n"
    "exit status: 0 it can be profiled, else that of memprof attach (doc/exit-status.md)\n";

static const char *const verdict_name[] = {"ok", "warning", "missing"};

static void print_finding(const struct finding *f)
{
	static const enum term_style style[] = {TERM_GOOD, TERM_WARNING, TERM_BAD};

	printf("  %s%-7s%s  %-13s  ", term_on(stdout, style[f->verdict]), verdict_name[f->verdict],
	       term_off(stdout), f->topic);
	term_line(stdout, INDENT, INDENT, "%s", printable(f->what));
	if (f->advice[0])
		term_line(stdout, 0, INDENT + 3, "%*s-> %s", INDENT, "", printable(f->advice));
}

static void print_text(const struct doctor *d)
{
	bool of_process = false;

	printf("memprof %s on this machine\n", MEMPROF_VERSION);
	for (int pass = 0; pass < 2; pass++, of_process = true) {
		if (of_process && d->pid)
			printf("process %d\n", d->pid);
		vec_for_each (&d->findings, f) {
			if (f->of_process != of_process)
				continue;
			print_finding(f);
		}
	}
	if (d->status)
		printf("memprof attach would fail with exit status %d\n", d->status);
	else if (d->pid)
		printf("process %d can be profiled: memprof attach -p %d\n", d->pid, d->pid);
	else
		printf("this machine can be profiled; for a process: memprof doctor -p PID\n");
}

static void json_findings(yajl_gen g, const struct doctor *d)
{
	json_name(g, "findings");
	yajl_gen_array_open(g);
	vec_for_each (&d->findings, f) {
		yajl_gen_map_open(g);
		json_text(g, "about", f->of_process ? "process" : "machine");
		json_text(g, "topic", f->topic);
		json_text(g, "verdict", verdict_name[f->verdict]);
		json_text(g, "what", f->what);
		json_text(g, "advice", f->advice[0] ? f->advice : NULL);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void json_functions(yajl_gen g, const struct hook_plan *plan)
{
	json_name(g, "functions");
	yajl_gen_array_open(g);
	vec_for_each (&plan->hooks, h) {
		yajl_gen_map_open(g);
		json_text(g, "function", h->name);
		json_text(g, "module", h->module);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static void json_modules(yajl_gen g, const struct doctor *d)
{
	json_name(g, "modules");
	yajl_gen_array_open(g);
	vec_for_each (&d->modules, m) {
		char id[2 * sizeof(m->facts.build_id) + 1];

		hex_text(m->facts.build_id, (size_t)m->facts.build_id_len, id);
		yajl_gen_map_open(g);
		json_text(g, "path", m->path);
		json_boolean(g, "readable", m->readable);
		json_text(g, "build_id", m->facts.build_id_len ? id : NULL);
		json_boolean(g, "symtab", m->facts.symtab);
		json_boolean(g, "dynsym", m->facts.dynsym);
		json_boolean(g, "minidebug", m->facts.minidebug);
		json_boolean(g, "debug_info", m->facts.lines);
		json_boolean(g, "debug_file", m->debug_file);
		json_boolean(g, "unwind_tables", m->facts.unwind);
		yajl_gen_map_close(g);
	}
	yajl_gen_array_close(g);
}

static int print_json(const struct doctor *d, struct mp_err *err)
{
	yajl_gen g = json_begin(stdout, true);

	if (!g)
		return mp_fail(err, MP_EXIT_FAILURE, -1, "out of memory");
	yajl_gen_map_open(g);
	json_text(g, "memprof_version", MEMPROF_VERSION);
	json_number(g, "pid", (uint64_t)d->pid);
	json_number(g, "exit_status", d->status);
	json_findings(g, d);
	if (d->examined) {
		json_text(g, "allocators", d->examination.plan.allocators);
		json_functions(g, &d->examination.plan);
	}
	if (d->pid)
		json_modules(g, d);
	yajl_gen_map_close(g);
	yajl_gen_free(g);
	putchar('\n');
	return 0;
}

static int examine(pid_t pid, const char *output, bool json)
{
	struct mp_err err = {0};
	struct doctor d;
	int status, ret;

	open_files_raise();
	ret = doctor_examine(&d, pid, output, &err);
	if (ret)
		return complain(&err);
	status = d.status;
	if (json)
		ret = print_json(&d, &err);
	else
		print_text(&d);
	doctor_free(&d);
	return ret ? complain(&err) : status;
}

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {PROCESS_LONG,
						{"output", required_argument, NULL, 'o'},
						{"json", no_argument, NULL, 'j'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	const char *output = "";
	bool json = false;
	pid_t pid = 0;
	int c, status;

	while ((c = getopt_long(argc, argv, ":o:h" PROCESS_SHORT, options, NULL)) != -1) {
		switch (c) {
		case 'p':
		case 'n':
			status = process_option("doctor", c, optarg, &pid);
			if (status)
				return status;
			break;
		case 'o':
			output = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return MP_EXIT_OK;
		default:
			return option_error("doctor", c, argv, options);
		}
	}
	if (optind < argc)
		return unexpected_argument("doctor", argv[optind]);
	return examine(pid, output, json);
}
