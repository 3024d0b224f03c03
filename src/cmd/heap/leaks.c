/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/formats.h"
#include "cmd/interrupt.h"
#include "cmd/heap/leaks_cmd.h"
#include "cmd/heap/leaks_join_json.h"
#include "cmd/options/parse.h"
#include "cmd/options/process.h"
#include "cmd/options/program.h"
#include "export/output.h"
#include "leaks/json.h"
#include "leaks/types/known.h"
#include "lib/create.h"
#include "lib/human.h"
#include "lib/path.h"
#include "lib/printable.h"

static const char help[] =
    "usage: memprof leaks -p PID | -n NAME [options]\n"
    "       memprof leaks --core CORE [options] EXECUTABLE\n"
    "Finds blocks that nothing in a running process points to any more.  The process needs no\n"
    "preparation: it is stopped for some milliseconds while it is copied, and the copy is "
    "analysed.\n"
    "  -p, --pid PID         the process\n"
    "  -n, --name NAME       the process with this name\n"
    "      --core FILE       analyse a core file instead of a process\n"
    "      --dry-run         print the mode and the predicted pause; touch nothing\n"
    "      --max-pause TIME  do nothing if the pause would be longer: 50ms, 1s\n"
    "      --confirm N       report only leaks that are in all of N snapshots (default 1)\n"
    "      --interval TIME   time between the snapshots (default 10s)\n"
    "      --why ADDR        show what keeps this block, and what it keeps\n"
    "      --budget N        exit with 1 only if more is leaked: 10MB, or 100blocks (default 0)\n"
    "      --suppress FILE   leave out leaks by lines of leak:PATTERN, as for LeakSanitizer\n"
    "      --baseline FILE   leave out leaks that an earlier --json report had\n"
    "      --json FILE       write the report as JSON\n"
    "      --recording FILE  find in this recording of the process where leaks were allocated;\n"
    "                        default: the current one (memprof attach)\n"
    "      --flamegraph SVG  where the leaked blocks were allocated, as a flame graph\n"
    "      --pprof FILE      the same for pprof\n"
    "      --collapsed FILE  the same as folded stacks\n"
    "      --full-stacks     every frame of a stack, also of libc and the C++ library\n"
    "      --no-content      show no bytes of the program\n"
    "      --require-exact   exit with 5 if the list of blocks is not exact\n"
    "      --gentle          stop one thread at a time; report only leaks that are in two "
    "snapshots\n"
    "                        (--confirm 2)\n"
    "      --pre-copy        read it while it runs, stop it only to read what it wrote meanwhile\n"
    "      --in-place        keep the process stopped instead of copying it (seconds)\n"
    "exit status: 0 no leaks, 1 leaks, 2 usage, 3 cannot be inspected, 4 pause would be too long,\n"
    "             5 not exact, 6 process ended, 7 pause was too long\n";

enum {
	OPT_DRY_RUN = 256,
	OPT_MAX_PAUSE,
	OPT_CONFIRM,
	OPT_INTERVAL,
	OPT_WHY,
	OPT_BUDGET,
	OPT_SUPPRESS,
	OPT_BASELINE,
	OPT_JSON,
	OPT_NO_CONTENT,
	OPT_REQUIRE_EXACT,
	OPT_IN_PLACE,
	OPT_CORE,
	OPT_GENTLE,
	OPT_PRE_COPY,
	OPT_RECORDING,
	OPT_FLAMEGRAPH,
	OPT_PPROF,
	OPT_COLLAPSED,
	OPT_FULL_STACKS,
};

/* The outputs that are made from the stacks of a recording. */
static const struct {
	int opt;
	const char *name;
	enum format format;
} graphs[] = {{OPT_FLAMEGRAPH, "--flamegraph", FORMAT_FLAMEGRAPH},
	      {OPT_PPROF, "--pprof", FORMAT_PPROF},
	      {OPT_COLLAPSED, "--collapsed", FORMAT_COLLAPSED}};
#define GRAPHS (sizeof(graphs) / sizeof(graphs[0]))

struct command {
	pid_t pid;
	bool dry_run, require_exact, budget_is_count, full_stacks;
	enum snapshot_mode mode;
	uint64_t budget;
	const char *suppress, *baseline, *json, *core, *exe, *recording;
	const char *graph[GRAPHS]; /* output files */
	struct analysis_options o;
};

/* Parses "10MB", "64k" as bytes, "100blocks" as blocks. */
static bool parse_budget(const char *text, struct command *c)
{
	char copy[32];
	size_t n = strlen(text);
	char *end;

	if (n >= sizeof(copy))
		return false;
	strcpy(copy, text);
	end = strstr(copy, "block");
	c->budget_is_count = end != NULL;
	if (end)
		*end = 0;
	else if (n > 1 && copy[n - 1] == 'B')
		copy[n - 1] = 0;
	return parse_bytes(copy, &c->budget);
}

static bool parse_address(const char *text, uint64_t *addr)
{
	char *end;

	errno = 0;
	*addr = strtoull(text, &end, 16);
	return !errno && end != text && !*end && *addr;
}

/* Sets the snapshot mode.  Return: false if another mode was set before. */
static bool set_mode(struct command *c, enum snapshot_mode mode)
{
	bool first = c->mode == SNAPSHOT_ANY || c->mode == mode;

	c->mode = mode;
	return first;
}

static const struct option options[] = {PROCESS_LONG,
					{"dry-run", no_argument, NULL, OPT_DRY_RUN},
					{"max-pause", required_argument, NULL, OPT_MAX_PAUSE},
					{"confirm", required_argument, NULL, OPT_CONFIRM},
					{"interval", required_argument, NULL, OPT_INTERVAL},
					{"why", required_argument, NULL, OPT_WHY},
					{"budget", required_argument, NULL, OPT_BUDGET},
					{"suppress", required_argument, NULL, OPT_SUPPRESS},
					{"baseline", required_argument, NULL, OPT_BASELINE},
					{"json", required_argument, NULL, OPT_JSON},
					{"no-content", no_argument, NULL, OPT_NO_CONTENT},
					{"require-exact", no_argument, NULL, OPT_REQUIRE_EXACT},
					{"in-place", no_argument, NULL, OPT_IN_PLACE},
					{"gentle", no_argument, NULL, OPT_GENTLE},
					{"pre-copy", no_argument, NULL, OPT_PRE_COPY},
					{"core", required_argument, NULL, OPT_CORE},
					{"recording", required_argument, NULL, OPT_RECORDING},
					{"flamegraph", required_argument, NULL, OPT_FLAMEGRAPH},
					{"pprof", required_argument, NULL, OPT_PPROF},
					{"collapsed", required_argument, NULL, OPT_COLLAPSED},
					{"full-stacks", no_argument, NULL, OPT_FULL_STACKS},
					{"help", no_argument, NULL, 'h'},
					{0}};

/* Return: what the value of the option must be. */
static const char *meant(int opt)
{
	switch (opt) {
	case OPT_CONFIRM:
		return "a number from 1 to 100";
	case OPT_WHY:
		return "an address in hexadecimal digits";
	case OPT_BUDGET:
		return "a size such as 10MB, or a number of blocks such as 100blocks";
	default:
		return "a duration such as 50ms, 1s or 5m";
	}
}

/* Return: 0, or the exit status after it printed an error. */
static int take_option(int opt, char *const *argv, struct command *c)
{
	bool ok = true;

	switch (opt) {
	case 'p':
	case 'n':
		return process_option("leaks", opt, optarg, &c->pid);
	case OPT_DRY_RUN:
		c->dry_run = true;
		break;
	case OPT_MAX_PAUSE:
		ok = parse_duration(optarg, &c->o.max_pause_ms) && c->o.max_pause_ms;
		break;
	case OPT_CONFIRM:
		ok = parse_count(optarg, &c->o.confirm) && c->o.confirm && c->o.confirm <= 100;
		break;
	case OPT_INTERVAL:
		ok = parse_duration(optarg, &c->o.interval_ms);
		break;
	case OPT_WHY:
		ok = parse_address(optarg, &c->o.why);
		break;
	case OPT_BUDGET:
		ok = parse_budget(optarg, c);
		break;
	case OPT_SUPPRESS:
		c->suppress = optarg;
		break;
	case OPT_BASELINE:
		c->baseline = optarg;
		break;
	case OPT_JSON:
		c->json = optarg;
		break;
	case OPT_NO_CONTENT:
		c->o.content = false;
		break;
	case OPT_REQUIRE_EXACT:
		c->require_exact = true;
		break;
	case OPT_IN_PLACE:
		ok = set_mode(c, SNAPSHOT_IN_PLACE);
		break;
	case OPT_GENTLE:
		ok = set_mode(c, SNAPSHOT_GENTLE);
		break;
	case OPT_PRE_COPY:
		ok = set_mode(c, SNAPSHOT_PRE_COPY);
		break;
	case OPT_CORE:
		c->core = optarg;
		break;
	case OPT_RECORDING:
		c->recording = optarg;
		break;
	case OPT_FULL_STACKS:
		c->full_stacks = true;
		break;
	case OPT_FLAMEGRAPH:
	case OPT_PPROF:
	case OPT_COLLAPSED:
		for (size_t i = 0; i < GRAPHS; i++)
			c->graph[i] = opt == graphs[i].opt ? optarg : c->graph[i];
		break;
	default:
		return option_error("leaks", opt, argv, options);
	}
	if (!ok && !optarg)
		return usage_error("leaks: --pre-copy, --gentle and --in-place exclude each other");
	return ok ? 0
		  : usage_error("leaks: --%s: '%s' is not %s", option_name(options, opt), optarg,
				meant(opt));
}

/* Return: the name of a requested graph option, or NULL. */
static const char *wanted_graph(const struct command *c)
{
	for (size_t i = 0; i < GRAPHS; i++) {
		if (c->graph[i])
			return graphs[i].name;
	}
	return NULL;
}

/* Rejects options that make no sense for a core file: it neither changes nor can be stopped. */
static int settle_core(const struct command *c)
{
	if (!c->exe)
		return usage_error("leaks: --core also needs the program that dumped the core");
	if (c->pid || c->dry_run || c->mode != SNAPSHOT_ANY || c->o.max_pause_ms ||
	    c->o.confirm > 1 || c->recording || wanted_graph(c))
		return usage_error(
		    "leaks: --core cannot be combined with -p, --dry-run, --pre-copy, --gentle, "
		    "--in-place, --max-pause, --confirm or stacks");
	return 0;
}

/* A single look at changing memory proves nothing: looks at least twice. */
static int settle_gentle(struct command *c)
{
	if (c->o.max_pause_ms)
		return usage_error("leaks: --gentle cannot be combined with --max-pause: it does "
				   "not stop the whole process");
	if (c->o.confirm < 2)
		c->o.confirm = 2;
	return 0;
}

static int parse_arguments(int argc, char **argv, struct command *c, bool *done)
{
	int opt, status;

	while ((opt = getopt_long(argc, argv, ":h" PROCESS_SHORT, options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			*done = true;
			return 0;
		}
		status = take_option(opt, argv, c);
		if (status)
			return status;
	}
	if (c->core && optind < argc)
		c->exe = argv[optind++];
	if (optind < argc)
		return unexpected_argument("leaks", argv[optind]);
	if (c->core)
		return settle_core(c);
	if (!c->pid)
		return process_missing("leaks");
	return c->mode == SNAPSHOT_GENTLE ? settle_gentle(c) : 0;
}

/* Prints the error.  Return: the exit status for it, see doc/exit-status.md. */
static int status_of(int error, const struct mp_err *err)
{
	complain(err);
	if (error == -ETIME || error == -ETIMEDOUT)
		return LEAKS_PAUSE;
	if (err->exit == MP_EXIT_USAGE)
		return LEAKS_USAGE;
	return LEAKS_NOT_INSPECTABLE;
}

static struct leaks_sum sum_up(const struct clusters *list)
{
	struct leaks_sum s = {0};

	vec_for_each (&list->list, c) {
		uint64_t fresh = c->count - c->known_count;

		if (c->suppressed) {
			s.suppressed += c->count + c->indirect_count;
			continue;
		}
		s.known += c->known_count;
		s.count += fresh;
		s.bytes += fresh * c->size;
		if (fresh) {
			s.count += c->indirect_count * fresh / c->count;
			s.bytes += (uint64_t)((double)c->indirect_bytes * (double)fresh /
					      (double)c->count);
		}
	}
	return s;
}

static int cannot_write(const char *path, int error)
{
	fprintf(stderr, "memprof: cannot write %s: %s\n", path, create_error(error));
	return error;
}

static int write_json(const struct analysis *a, struct leak_join *j, const char *path,
		      const char *mode)
{
	const struct leaks_recording r = {join_json, join_json_stack, j};
	FILE *f;
	int ret = create_stream(path, &f);

	if (!ret) {
		ret = leaks_json(a, mode, j->r.read ? &r : NULL, f);
		if (fclose(f) && !ret)
			ret = -errno;
	}
	return ret ? cannot_write(path, ret) : 0;
}

static int write_graph(struct leak_join *j, enum format format, const char *path)
{
	const struct format_request r = {.format = format, .leaks = true, .cost = -1};
	struct mp_err err = {0};
	FILE *out = output_open(path, format_facts(format)->gzip, &err);
	int ret, closed;

	if (!out)
		return complain(&err);
	ret = format_write(&j->r.m, &r, out, &err);
	closed = output_close(out);
	if (ret)
		return complain(&err);
	return closed ? cannot_write(path, closed) : 0;
}

/* Prints the result.  Return: the exit status. */
static int print_leaks(struct analysis *a, struct leak_join *j, const struct command *c,
		       const char *mode)
{
	const struct stack_names names = {join_any_name, j};
	struct mp_err err = {0};
	struct leaks_sum sum;
	bool failed;

	if ((c->suppress &&
	     clusters_suppress(&a->clusters, c->suppress, j->r.read ? &names : NULL, &err)) ||
	    (c->baseline && clusters_baseline(&a->clusters, c->baseline, &err)))
		return complain(&err);
	sum = sum_up(&a->clusters);
	if (c->o.why)
		leaks_print_why(&a->why, j);
	else
		leaks_print_report(a, &sum, j);
	failed = c->json && write_json(a, j, c->json, mode);
	for (size_t i = 0; i < GRAPHS; i++)
		failed |= c->graph[i] && write_graph(j, graphs[i].format, c->graph[i]);
	if (failed)
		return LEAKS_NOT_INSPECTABLE;
	if (c->require_exact && !a->census.exact)
		return LEAKS_APPROXIMATE;
	if (c->o.why)
		return LEAKS_NONE;
	return (c->budget_is_count ? sum.count : sum.bytes) > c->budget ? LEAKS_FOUND : LEAKS_NONE;
}

/* Joins the recording.  If that fails, the report is printed without stacks, unless they were
 * requested. */
static int join_recording(struct leak_join *j, struct analysis *a, const struct command *c)
{
	struct mp_err err = {0};
	int ret = join_make(j, a, &err);

	j->r.m.shown.full = c->full_stacks;
	if (!ret)
		return 0;
	if (c->recording || wanted_graph(c))
		return status_of(ret, &err);
	snprintf(j->r.why_not, sizeof(j->r.why_not), "%s", err.what);
	join_free(j);
	return 0;
}

static int analyse(struct target *t, const struct snapshot_plan *plan, const struct command *c,
		   struct leak_join *j)
{
	struct mp_err err = {0};
	struct analysis a = {0};
	int ret = analysis_run(&a, t, plan, &c->o, &err), status;

	interrupt_end();
	if (ret)
		ret = target_ask_again(t, ret, &err);
	if (ret == -ESRCH || (ret && err.exit == MP_EXIT_NO_PROCESS))
		status = (complain(&err), LEAKS_GONE);
	else
		status = ret ? status_of(ret, &err) : join_recording(j, &a, c);
	if (!status && a.overrun)
		leaks_print_overrun(&a, t);
	if (!status)
		status = print_leaks(&a, j, c, snapshot_mode_name(a.plan.mode));
	if (a.overrun && status != LEAKS_NOT_INSPECTABLE && status != LEAKS_GONE)
		status = LEAKS_OVERRUN;
	analysis_free(&a);
	return status;
}

static int run_leaks(struct target *t, const struct command *c)
{
	const char *graph = wanted_graph(c);
	struct mp_err err = {0};
	struct snapshot_plan plan;
	struct leak_join j = {0};
	int ret = recording_of_find(&j.r, t, c->recording, &err), status = LEAKS_NONE;

	if (!ret && graph && !j.r.path[0])
		ret = mp_fail(&err, MP_EXIT_USAGE, -EINVAL, "leaks: %s needs stacks, and %s", graph,
			      j.r.why_not);
	if (!ret)
		ret = snapshot_plan(&plan, t, c->mode, c->o.max_pause_ms, &err);
	if (ret)
		return status_of(target_ask_again(t, ret, &err), &err);
	interrupt_begin(LEAKS_NOT_INSPECTABLE, LEAKS_PAUSE);
	leaks_print_plan(t, &plan);
	fflush(stdout);
	if (!c->dry_run)
		status = analyse(t, &plan, c, &j);
	join_free(&j);
	return status;
}

static int run_core(const struct command *c)
{
	struct mp_err err = {0};
	struct analysis a = {0};
	struct leak_join none = {0};
	struct image img;
	int ret, status;

	image_init(&img, NULL, 0);
	ret = image_open_core(&img, c->core, c->exe, &err);
	if (!ret) {
		a.threads = (uint32_t)img.threads.n;
		snprintf(a.exe, sizeof(a.exe), "%s", c->exe);
		snprintf(a.name, sizeof(a.name), "%s", path_base(c->exe));
		leaks_print_core(&img, a.name);
		ret = analysis_of_image(&a, &img, &c->o, &err);
	}
	status = ret ? status_of(ret, &err) : print_leaks(&a, &none, c, "core");
	analysis_free(&a);
	image_close(&img);
	return status;
}

int cmd_leaks(int argc, char **argv)
{
	struct command c = {
	    .o = {.confirm = 1, .interval_ms = ANALYSIS_INTERVAL_MS, .content = true}};
	struct mp_err err = {0};
	struct target t;
	bool done = false;
	int status = parse_arguments(argc, argv, &c, &done), ret;

	if (status || done)
		return status;
	if (c.core && c.exe)
		return run_core(&c);
	ret = target_look(&t, c.pid, &err);
	if (ret)
		return status_of(ret, &err);
	t.steps = debug_steps();
	program_is_of(c.pid);
	status = run_leaks(&t, &c);
	target_close(&t);
	return status;
}
