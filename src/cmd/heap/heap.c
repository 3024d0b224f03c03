/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "cmd/heap/heap_growth.h"
#include "cmd/heap/heap_retained.h"
#include "export/text/terminal.h"
#include "export/text/text.h"
#include "cmd/interrupt.h"
#include "cmd/heap/leaks_cmd.h"
#include "cmd/options/parse.h"
#include "cmd/options/process.h"
#include "cmd/options/program.h"
#include "leaks/heap_report.h"
#include "lib/create.h"
#include "lib/human.h"
#include "lib/path.h"
#include "lib/printable.h"

#define LONGEST_MS	 (366ull * 86400 * 1000) /* of --growth */
#define MAX_LINES	 40
#define MAX_CONTAINERS	 20
#define TYPE_COLUMN	 36 /* where the type begins */
#define CONTAINER_COLUMN 47

static const char help[] =
    "usage: memprof heap -p PID | -n NAME [options]\n"
    "       memprof heap --core CORE --retained|--save FILE [options] EXECUTABLE\n"
    "       memprof heap diff BEFORE AFTER... [options]\n"
    "Lists what is live in the heap of a running process, by type and size, and what its resident\n"
    "memory consists of.  The process is stopped for some milliseconds while it is copied.\n"
    "  -p, --pid PID        the process\n"
    "  -n, --name NAME      the process with this name\n"
    "      --core FILE      analyse a core file instead of a process\n"
    "      --list FILE      write every live block: address, usable size\n"
    "      --pre-copy       read it while it runs, stop it only to read what it wrote meanwhile\n"
    "      --in-place       keep the process stopped instead of copying it\n"
    "      --recording FILE a recording of the process, to show where blocks were allocated;\n"
    "                       without it that of a running memprof attach is used\n"
    "      --retained       show instead which variables, stacks and blocks keep how much\n"
    "      --growth TIME    look again after this time, and show what grew: 60s, 10m, 1h\n"
    "      --samples N      with --growth: looks, from 2 to 100 (default 2); with 3 or more "
    "steady\n"
    "                       growth is told from noise\n"
    "      --budget AMOUNT  with --growth: exit with 1 if all live blocks grow by more: 10MB/h, "
    "or\n"
    "                       10MB in all\n"
    "      --save FILE      save a look (the last one) for memprof heap diff\n"
    "with --retained; --depth, --count and --json also with --growth:\n"
    "      --tree           print a tree instead of the table\n"
    "      --depth N        levels below each root (default 4; of a tree or file 32; at most 64)\n"
    "      --count N        lines of each level (default 10; of a tree or file 100)\n"
    "      --of WHAT        only what this variable, or the block at this address, keeps\n"
    "      --flamegraph SVG, --icicle SVG, --json FILE, --collapsed FILE, --pprof FILE\n"
    "                       write it to a file\n"
    "exit status with --growth, --save and diff: 0 within the budget, 1 above it, 2 usage, 3 "
    "cannot\n"
    "             be inspected, 4 did not stop in time, 6 process ended\n";

enum {
	OPT_CORE = 256,
	OPT_RECORDING,
	OPT_RETAINED,
	OPT_TREE,
	OPT_DEPTH,
	OPT_COUNT,
	OPT_OF,
	OPT_GROWTH,
	OPT_SAMPLES,
	OPT_BUDGET,
	OPT_SAVE,
	OPT_OUTPUT, /* + enum retained_output */
};

static const struct option options[] = {
    PROCESS_LONG,
    {"list", required_argument, NULL, 'L'},
    {"in-place", no_argument, NULL, 'I'},
    {"pre-copy", no_argument, NULL, 'P'},
    {"core", required_argument, NULL, OPT_CORE},
    {"recording", required_argument, NULL, OPT_RECORDING},
    {"retained", no_argument, NULL, OPT_RETAINED},
    {"tree", no_argument, NULL, OPT_TREE},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"count", required_argument, NULL, OPT_COUNT},
    {"of", required_argument, NULL, OPT_OF},
    {"growth", required_argument, NULL, OPT_GROWTH},
    {"samples", required_argument, NULL, OPT_SAMPLES},
    {"budget", required_argument, NULL, OPT_BUDGET},
    {"save", required_argument, NULL, OPT_SAVE},
    {"flamegraph", required_argument, NULL, OPT_OUTPUT + RETAINED_FLAMEGRAPH},
    {"icicle", required_argument, NULL, OPT_OUTPUT + RETAINED_ICICLE},
    {"collapsed", required_argument, NULL, OPT_OUTPUT + RETAINED_COLLAPSED},
    {"pprof", required_argument, NULL, OPT_OUTPUT + RETAINED_PPROF},
    {"json", required_argument, NULL, OPT_OUTPUT + RETAINED_JSON},
    {"help", no_argument, NULL, 'h'},
    {0}};

struct heap_command {
	pid_t pid;
	const char *list, *core, *exe, *recording;
	enum snapshot_mode mode;
	bool retained;
	struct retained_request request;
	struct growth_request growth;
};

static int write_list(const struct census *c, const char *path)
{
	FILE *f;
	int ret = create_stream(path, &f);

	if (ret) {
		fprintf(stderr, "memprof: cannot write %s: %s\n", path, create_error(ret));
		return MP_EXIT_OUTPUT;
	}
	vec_for_each (&c->blocks, b)
		fprintf(f, "%" PRIx64 " %" PRIu64 "\n", b->addr, b->size);
	if (fclose(f)) {
		fprintf(stderr, "memprof: cannot write %s: %s\n", path, strerror(errno));
		return MP_EXIT_OUTPUT;
	}
	return MP_EXIT_OK;
}

static void line(uint64_t bytes, const struct resident *a, const char *what)
{
	printf("%s%11s%s  %5.1f %%  %s\n", term_on(stdout, TERM_AMOUNT), human(bytes),
	       term_off(stdout), a->total ? 100.0 * (double)bytes / (double)a->total : 0, what);
}

static void print_resident(const struct resident *a)
{
	printf("\nresident memory, page by page:\n");
	line(a->live, a, "live blocks");
	line(a->cached, a, "free blocks in the caches of threads");
	line(a->metadata, a, "headers and tables of allocators");
	line(a->free, a, "free in the heap (fragmentation, and what allocators keep)");
	line(a->stacks, a, "stacks");
	line(a->modules_data, a, "data of program and libraries");
	line(a->modules_text, a, "text and constants of program and libraries");
	line(a->files, a, "other mapped files");
	line(a->shared, a, "shared memory and devices");
	line(a->anonymous, a, "other mappings of the program");
	line(a->total, a, "all of these");
	printf("%11s           the kernel reports (Rss)\n", human(a->rss));
	if (a->swap)
		printf("%11s           more are swapped out\n", human(a->swap));
	if (a->live_untouched)
		printf("%11s           of live blocks were never touched\n",
		       human(a->live_untouched));
	if (a->anonymous > a->total / 2)
		printf("most of it is in mappings that the program made itself, without malloc(): "
		       "buffers, or a heap\n"
		       "of its own (as in PHP, Java, Go and node), whose blocks memprof cannot "
		       "list\n");
}

/* The site of a row, on a line of its own. */
static void print_row_site(const struct heap_site *site)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out) {
		heap_write_site(site, out);
		fclose(out);
	}
	/* Without ", ". */
	printf("%*s", TYPE_COLUMN + 2, "");
	term_line(stdout, TYPE_COLUMN + 2, TYPE_COLUMN + 4, "%s", text && *text ? text + 2 : "");
	free(text);
}

static void print_types(const struct heap_types *h, const struct heap_sites *sites)
{
	uint64_t left = 0, left_bytes = 0;

	printf("\n%s, %s:\n%s%11s %11s %10s  %s%s\n", counted(h->count, "live block"),
	       human(h->bytes), term_on(stdout, TERM_FAINT), "bytes", "blocks", "size", "type",
	       term_off(stdout));
	for (size_t i = 0; i < h->list.n; i++) {
		const struct heap_type *t = &h->list.at[i];
		const struct heap_site *site = heap_sites_of(sites, t->number);
		const char *library = t->owner ? program_library(t->owner) : NULL;
		char owner[TEXT_WHERE] = "";

		if (i >= MAX_LINES) {
			left += t->count;
			left_bytes += t->bytes;
			continue;
		}
		printf("%s%11s%s %11s %10s  ", term_on(stdout, TERM_AMOUNT), human(t->bytes),
		       term_off(stdout), thousands(t->count), t->size ? human(t->size) : "");
		if (library)
			snprintf(owner, sizeof(owner), "  [%s]", printable(library));
		text_name(t->type[0]	       ? printable(t->type)
			  : site && site->type ? printable(site->type)
					       : "(not known)",
			  owner, t->type[0], TYPE_COLUMN, stdout);
		putchar('\n');
		if (site)
			print_row_site(site);
	}
	if (left)
		printf("%11s %11s             in smaller groups\n", human(left_bytes),
		       thousands(left));
}

static void print_containers(const struct heap_types *h)
{
	uint64_t left = 0;

	if (!h->containers.n)
		return;
	printf("\ncontainers, without what their elements point to:\n"
	       "%s%11s %11s %10s %10s  %s%s\n",
	       term_on(stdout, TERM_FAINT), "elements", "containers", "bytes", "unused", "type",
	       term_off(stdout));
	for (size_t i = 0; i < h->containers.n; i++) {
		const struct heap_container *c = &h->containers.at[i];

		if (i >= MAX_CONTAINERS) {
			left += c->sum.count;
			continue;
		}
		printf("%11s %11s %s%10s%s %10s  ", thousands(c->sum.elements),
		       thousands(c->sum.count), term_on(stdout, TERM_AMOUNT), human(c->sum.bytes),
		       term_off(stdout), c->sum.unused ? human(c->sum.unused) : "");
		text_name(printable(c->type), "", true, CONTAINER_COLUMN, stdout);
		putchar('\n');
		if (!c->where)
			continue;
		printf("%*s", CONTAINER_COLUMN + 2, "");
		if (c->sum.count > 1)
			printf("the largest has %s: ", thousands(c->largest));
		printf("%s", printable(c->where));
		if (c->module)
			printf("  [%s]", printable(program_library(c->module)));
		putchar('\n');
	}
	if (left)
		printf("%11s %11s             of other types\n", "", thousands(left));
}

/* Prints what was found and writes the files.  Return: the exit status. */
static int print_findings(const struct target *t, const struct heap_command *c,
			  const struct heap_report *r, const struct heap_sites *sites)
{
	const struct snapshot *s = &r->m.snapshot;
	const struct retained_about about = {
	    t->pid,	 t->status.name, snapshot_mode_name(s->plan.mode),
	    s->pause_ns, &r->m.census,	 sites};
	int status = MP_EXIT_OK;

	leaks_print_pause(s->pause_ns, s->wait_ns);
	putchar('\n');
	leaks_print_heaps(&r->m.census);
	heap_print_sites(sites);
	if (c->retained) {
		status = retained_report(&r->retained, &c->request, &about);
	} else {
		print_types(&r->types, sites);
		print_containers(&r->types);
		heap_print_notes(&r->types.notes);
		print_resident(&r->resident);
	}
	return !status && c->list ? write_list(&r->m.census, c->list) : status;
}

/* Looks the blocks up in the recording, if there is one.  Without --recording a failure only means
 * that the report lacks it.  Return: 0 or -errno with @err. */
static int join_recording(struct heap_sites *sites, const struct heap_report *r,
			  const struct heap_command *c, struct mp_err *err)
{
	const uint32_t *of = c->retained ? r->retained.line_of : r->types.type_of;
	const uint32_t n = c->retained ? r->retained.lines : (uint32_t)r->types.list.n;
	struct mp_err why = {0};
	int ret =
	    of ? heap_sites_make(sites, &r->m.census, of, n, r->m.snapshot.taken_ns, &why) : 0;

	if (!ret && c->retained && r->retained.all && heap_sites_name(sites, r->retained.all))
		ret = mp_fail(&why, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	if (!ret)
		return 0;
	if (c->recording) {
		*err = why;
		return ret;
	}
	heap_sites_free(sites);
	snprintf(sites->rec.why_not, sizeof(sites->rec.why_not), "%s", why.what);
	return 0;
}

static int take_report(struct heap_report *r, struct heap_sites *sites, struct target *t,
		       struct snapshot_plan *plan, struct heap_command *c, struct mp_err *err)
{
	struct heap_report_options wanted = {0};
	struct retained_options o;
	int ret = recording_of_find(&sites->rec, t, c->recording, err);

	c->request.sites = wanted.type_of = sites->rec.path[0];
	o = retained_needed(&c->request);
	wanted.retained = c->retained ? &o : NULL;
	if (!ret)
		ret = snapshot_plan(plan, t, c->mode, 0, err);
	return ret ? target_ask_again(t, ret, err) : heap_report_take(r, t, plan, &wanted, err);
}

static int run_heap(struct target *t, struct heap_command *c)
{
	struct heap_sites sites = {0};
	struct heap_report r = {0};
	struct snapshot_plan plan;
	struct mp_err err = {0};
	int ret, status;

	interrupt_begin(MP_EXIT_FAILURE, MP_EXIT_FAILURE);
	ret = take_report(&r, &sites, t, &plan, c, &err);
	interrupt_end();
	if (!ret)
		ret = join_recording(&sites, &r, c, &err);
	if (ret) {
		status = complain(&err);
	} else {
		leaks_print_plan(t, &plan);
		status = print_findings(t, c, &r, &sites);
	}
	if (r.end.what[0] && !status)
		status = complain(&r.end);
	heap_sites_free(&sites);
	heap_report_free(&r);
	return status;
}

static int run_core(const struct heap_command *c)
{
	const struct retained_options o = retained_needed(&c->request);
	struct retained_about about = {.name = path_base(c->exe), .mode = "core"};
	struct mp_err err = {0};
	struct retained r = {0};
	struct census census = {0};
	struct image img;
	int ret, status;

	image_init(&img, NULL, 0);
	ret = image_open_core(&img, c->core, c->exe, &err);
	if (!ret)
		ret = census_take(&census, &img, &err);
	if (!ret)
		ret = retained_take(&r, &img, &census, &o, &err);
	if (ret) {
		status = complain(&err);
	} else {
		about.pid = img.threads.at[0].tid;
		about.census = &census;
		leaks_print_core(&img, about.name);
		leaks_print_heaps(&census);
		status = retained_report(&r, &c->request, &about);
		if (!status && c->list)
			status = write_list(&census, c->list);
	}
	retained_free(&r);
	census_free(&census);
	image_close(&img);
	return status;
}

/* Return: 0, or the exit status after it printed an error. */
static int take_option(int opt, char *const *argv, struct heap_command *c)
{
	struct retained_request *q = &c->request;
	bool ok = true;

	switch (opt) {
	case 'p':
	case 'n':
		return process_option("heap", opt, optarg, &c->pid);
	case 'L':
		c->list = optarg;
		break;
	case 'I':
		c->mode = SNAPSHOT_IN_PLACE;
		break;
	case 'P':
		c->mode = SNAPSHOT_PRE_COPY;
		break;
	case OPT_CORE:
		c->core = optarg;
		break;
	case OPT_RECORDING:
		c->recording = optarg;
		break;
	case OPT_RETAINED:
		c->retained = true;
		break;
	case OPT_TREE:
		q->tree = true;
		break;
	case OPT_DEPTH:
		ok = parse_count(optarg, &q->depth) && q->depth && q->depth <= RETAINED_MAX_DEPTH;
		break;
	case OPT_COUNT:
		ok = parse_count(optarg, &q->count) && q->count;
		break;
	case OPT_OF:
		q->of = optarg;
		break;
	case OPT_GROWTH:
		ok = parse_duration(optarg, &c->growth.duration_ms) && c->growth.duration_ms &&
		     c->growth.duration_ms <= LONGEST_MS;
		break;
	case OPT_SAMPLES:
		ok = parse_count(optarg, &c->growth.samples) && c->growth.samples >= 2 &&
		     c->growth.samples <= GROWTH_MAX_LOOKS;
		break;
	case OPT_BUDGET:
		c->growth.has_budget = true;
		ok = growth_parse_budget(optarg, &c->growth.budget);
		break;
	case OPT_SAVE:
		c->growth.save = optarg;
		break;
	default:
		if (opt < OPT_OUTPUT || opt >= OPT_OUTPUT + RETAINED_OUTPUTS)
			return option_error("heap", opt, argv, options);
		q->file[opt - OPT_OUTPUT] = optarg;
	}
	return ok ? 0
		  : usage_error("heap: --%s: '%s' is not %s", option_name(options, opt), optarg,
				opt == OPT_GROWTH   ? "a duration such as 60s or 10m"
				: opt == OPT_BUDGET ? "an amount such as 10MB/h, or 10MB"
						    : "a number in its range");
}

static bool wants_growth(const struct heap_command *c)
{
	return c->growth.duration_ms || c->growth.samples || c->growth.has_budget || c->growth.save;
}

/* Checks the options of --growth and --save.  Return: as settle_arguments(). */
static int settle_growth(struct heap_command *c)
{
	struct growth_request *g = &c->growth;
	const struct retained_request *q = &c->request;
	bool other =
	    (c->retained && !g->duration_ms) || c->list || c->recording || q->tree || q->of;

	for (int i = 0; i < RETAINED_OUTPUTS; i++)
		other |= q->file[i] && i != RETAINED_JSON;
	if (!g->duration_ms && (g->samples || g->has_budget))
		return usage_error("heap: --samples and --budget need --growth");
	if (other)
		return usage_error(
		    "heap: --growth and --save cannot be combined with --list, "
		    "--recording, --tree, --of or pictures, and --save not with --retained");
	if (!g->duration_ms && (q->depth || q->count || q->file[RETAINED_JSON]))
		return usage_error("heap: --depth, --count and --json need --retained or --growth");
	if (c->core && g->duration_ms)
		return usage_error("heap: --growth needs a process: a core file does not change");
	g->depth = q->depth;
	g->count = q->count;
	g->json = q->file[RETAINED_JSON];
	return 0;
}

/* Checks that the options fit together.  Return: 0, or the exit status after it printed an error.
 */
static int settle_arguments(struct heap_command *c, char *const *rest)
{
	const struct retained_request *q = &c->request;
	bool wants = q->tree || q->depth || q->count || q->of, grows = wants_growth(c);
	int status = grows ? settle_growth(c) : 0;

	if (status)
		return status;
	for (int i = 0; i < RETAINED_OUTPUTS; i++)
		wants |= q->file[i] != NULL;
	if (wants && !c->retained && !grows)
		return usage_error("heap: --tree, --depth, --count, --of and output files need "
				   "--retained");
	if (c->core && !c->retained && !grows)
		return usage_error("heap: --core needs --retained or --save");
	if (c->core && (c->pid || c->recording || c->mode != SNAPSHOT_ANY))
		return usage_error("heap: --core cannot be combined with -p, --recording, "
				   "--pre-copy or --in-place");
	if (c->core && !c->exe)
		return usage_error("heap: --core also needs the program that dumped the core");
	if (!c->core && c->exe)
		return unexpected_argument("heap", c->exe);
	if (c->exe && rest[1])
		return usage_error("heap: unexpected argument '%s'", rest[1]);
	if (!c->core && !c->pid)
		return process_missing("heap");
	return 0;
}

int cmd_heap(int argc, char **argv)
{
	struct heap_command c = {0};
	struct mp_err err = {0};
	struct target t;
	int opt, status;

	if (argc > 1 && !strcmp(argv[1], "diff"))
		return heap_diff(argc - 1, argv + 1);
	while ((opt = getopt_long(argc, argv, ":h" PROCESS_SHORT, options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		status = take_option(opt, argv, &c);
		if (status)
			return status;
	}
	c.exe = argv[optind];
	status = settle_arguments(&c, argv + optind);
	if (status)
		return status;
	if (c.core)
		return c.growth.save ? heap_save_core(c.core, c.exe, &c.growth) : run_core(&c);
	if (target_look(&t, c.pid, &err))
		return wants_growth(&c) ? growth_complain(0, &err) : complain(&err);
	t.steps = debug_steps();
	program_is_of(c.pid);
	status = wants_growth(&c) ? heap_growth_run(&t, c.mode, &c.growth) : run_heap(&t, &c);
	target_close(&t);
	return status;
}
