/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/server.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd/cmd.h"
#include "cmd/gathering.h"
#include "cmd/own_recorder.h"
#include "cmd/options/parse.h"
#include "cmd/options/process.h"
#include "control/requests.h"
#include "lib/human.h"
#include "lib/printable.h"
#include "record/pieces/carry.h"

#define PORT	    8080
#define WORKERS	    8
#define WAITING	    512
#define SECONDS	    300
#define MOST_NAMES  16
#define SECOND_MS   1000u
#define PROCESSES   16
#define MEMORY_PART 4 /* a quarter of the machine's memory */

static const char help[] =
    "usage: memprof server FILE|DIR... | -p PID... | -n NAME... [options]\n"
    "Serves recordings over HTTP, also while they grow: bytehound's REST API, and what memprof "
    "knows "
    "beside\n"
    "that (doc/rest.md).  Of a folder, all recordings are served, also those that are put there "
    "later.\n"
    "Ctrl-C ends the server.\n"
    "  -p, --pid PID         the recording of a process; if there is none, records, and leaves "
    "the\n"
    "                        process as it was (up to 16 times)\n"
    "  -n, --name NAME       the same of the process with this name\n"
    "  -o, --output FILE     keep what is recorded there; without: it is removed at the end\n"
    "      --gather FILE     receive recordings of other machines into the folder DIR, as memprof "
    "gather\n"
    "                        does (doc/streaming.md); FILE has the secret that the senders have, "
    "too\n"
    "      --gather-at PORT  wait for senders there; ADDR:PORT at that address (default 9743, at "
    "all)\n"
    "      --port N          port (default 8080; 0: any that is free)\n"
    "      --interface ADDR  IPv4 or IPv6 address to listen at (default 127.0.0.1); other machines "
    "can\n"
    "                        reach some addresses, and must then send a token, which is printed\n"
    "      --token           clients of this machine must send the token, too\n"
    "      --host NAME       a name by which clients call the server, beside localhost and "
    "addresses\n"
    "                        (up to 16 times)\n"
    "      --origin URL      a site whose pages may use the server, as in https://example.org (up "
    "to\n"
    "                        16 times)\n"
    "      --timeout TIME    until an answer begins, at most (default 5m)\n"
    "      --memory BYTES    for each request, at most (default: a quarter of this machine's "
    "memory)\n";

struct arguments {
	struct server server;
	pid_t pid[PROCESSES];
	uint32_t pids;
	const char *output;
	struct gathering_options gather; /* token: NULL: nothing is received */
	const char *interface;
	uint16_t port;
	bool token;
	const char *hosts[MOST_NAMES + 1], *origins[MOST_NAMES + 1];
	char token_text[ACCESS_TOKEN_LENGTH + 1];
};

static int add_name(const char **list, const char *option)
{
	for (uint32_t i = 0; i < MOST_NAMES; i++) {
		if (!list[i]) {
			list[i] = optarg;
			return 0;
		}
	}
	return usage_error("server: --%s: more than %d times", option, MOST_NAMES);
}

/* Return: 0, or the exit status after it printed an error. */
static int take_option(struct arguments *a, int c)
{
	uint32_t n;
	uint64_t v;

	switch (c) {
	case 'p':
	case 'n':
		if (a->pids == PROCESSES)
			return usage_error("server: --pid: more than %d processes", PROCESSES);
		return process_option("server", c, optarg, &a->pid[a->pids++]);
	case 'o':
		a->output = optarg;
		return 0;
	case 'G':
		a->gather.token = optarg;
		return 0;
	case 'A':
		a->gather.listen = optarg;
		return 0;
	case 'P':
		if (!parse_count(optarg, &n) || n > UINT16_MAX)
			return usage_error("server: --port: '%.100s' is not a number from 0 to "
					   "65535",
					   optarg);
		a->port = (uint16_t)n;
		return 0;
	case 'i':
		a->interface = optarg;
		return 0;
	case 'T':
		a->token = true;
		return 0;
	case 'H':
		return add_name(a->hosts, "host");
	case 'O':
		return add_name(a->origins, "origin");
	case 't':
		if (!parse_duration(optarg, &v) || v < SECOND_MS || v / SECOND_MS > UINT32_MAX)
			return usage_error("server: --timeout: '%.100s' is not a time of 1s or "
					   "more",
					   optarg);
		a->server.limits.seconds = (uint32_t)(v / SECOND_MS);
		return 0;
	default:
		if (parse_bytes(optarg, &a->server.limits.memory))
			return 0;
		return usage_error("server: --memory: '%.100s' is not a size", optarg);
	}
}

static int add_folder(struct server *s, const char *path)
{
	struct folder f;
	struct mp_err err = {0};
	int ret = folder_open(path, &f);

	if (!ret && (ret = vec_push(&s->folders, f)))
		folder_close(&f);
	if (ret) {
		mp_fail(&err, MP_EXIT_RECORDING, ret, "%.200s: %s", path, strerror(-ret));
		return complain(&err);
	}
	folder_look(&s->folders.at[s->folders.n - 1], &s->recordings);
	return 0;
}

static int add_file(struct server *s, const char *path)
{
	struct mp_err err = {0};
	bool known = false;
	struct stat st;

	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return add_folder(s, path);
	if (recordings_add(&s->recordings, path, &known, &err))
		return complain(&err);
	if (known)
		fprintf(stderr, "memprof: %s is the same recording as one before\n",
			printable(path));
	return 0;
}

/* Adds the recording of a process, which begins now if there is none. */
static int add_process(struct arguments *a, pid_t pid, struct own_recorder *own)
{
	const struct recording_options o = {.path = a->output, .carry_budget = CARRY_BUDGET};
	struct recorder_boundary b;
	struct mp_err err = {0};
	struct ss_journal j;
	int status = own_recorder_want("server", pid, &o, own);

	if (status)
		return status;
	/* Then the beginning of the file is there. */
	if (request_send(pid, "flush", &j, &b, &err))
		return complain(&err);
	return add_file(&a->server, j.recording);
}

static void announce(const struct server *s)
{
	printf("Serving %s at %s%s%s\n", counted(s->recordings.at.n, "recording"), s->listener.url,
	       s->rules.token ? "/?token=" : "/", s->rules.token ? s->rules.token : "");
	if (s->rules.token)
		printf("Clients send: Authorization: Bearer %s\n", s->rules.token);
	fflush(stdout);
}

static void announce_with_process(const struct server *s)
{
	announce(s);
	printf("Ctrl-C ends the server; then the process is as it was.\n");
	fflush(stdout);
}

static int settle_access(struct arguments *a)
{
	struct access_rules *rules = &a->server.rules;
	struct mp_err err = {0};
	int ret;

	rules->hosts = a->hosts;
	rules->origins = a->origins;
	if (!a->token && a->server.listener.loopback)
		return 0;
	ret = access_make_token(a->token_text);
	if (ret) {
		mp_fail(&err, MP_EXIT_FAILURE, ret, "no random numbers: %s", strerror(-ret));
		return complain(&err);
	}
	rules->token = a->token_text;
	return 0;
}

static int serve(struct arguments *a)
{
	struct server *s = &a->server;
	struct own_recorder own[PROCESSES] = {0};
	struct mp_err err = {0};
	uint32_t begun = 0;
	int status = settle_access(a);

	for (; begun < a->pids && !status; begun++)
		status = add_process(a, a->pid[begun], &own[begun]);
	if (status) {
		close(s->listener.fd);
	} else if (server_run(s, a->pids ? announce_with_process : announce, &err)) {
		status = complain(&err);
	}
	for (uint32_t i = 0; i < begun; i++) {
		int ended = own_recorder_end(&own[i]);

		status = status ? status : ended;
	}
	return status;
}

static int run_server(struct arguments *a)
{
	struct mp_err err = {0};

	/* Before a process is changed. */
	if (listen_open(a->interface, a->port, &a->server.listener, &err))
		return complain(&err);
	return serve(a);
}

/* @files: @n paths */
static int run_with_files(struct arguments *a, char **files, int n)
{
	int status = 0;

	for (int i = 0; i < n && !status; i++)
		status = add_file(&a->server, files[i]);
	return status ? status : run_server(a);
}

static int run_with_gathering(struct arguments *a, char **files, int n)
{
	struct gathering g;
	pid_t child;
	int status, ended;

	if (n != 1)
		return usage_error("server: --gather needs one folder, where the recordings are "
				   "put");
	a->gather.folder = files[0];
	status = gathering_open(&a->gather, &g);
	if (status)
		return status;
	status = gathering_start(&g, &child);
	gathering_close(&g);
	if (status)
		return status;
	status = run_with_files(a, files, n);
	ended = gathering_end(child);
	return status ? status : ended;
}

static uint64_t usual_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages / MEMORY_PART * (uint64_t)size : 0;
}

int cmd_server(int argc, char **argv)
{
	static const struct option options[] = {PROCESS_LONG,
						{"output", required_argument, NULL, 'o'},
						{"gather", required_argument, NULL, 'G'},
						{"gather-at", required_argument, NULL, 'A'},
						{"port", required_argument, NULL, 'P'},
						{"interface", required_argument, NULL, 'i'},
						{"token", no_argument, NULL, 'T'},
						{"host", required_argument, NULL, 'H'},
						{"origin", required_argument, NULL, 'O'},
						{"timeout", required_argument, NULL, 't'},
						{"memory", required_argument, NULL, 'M'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct arguments a = {
	    .interface = "127.0.0.1",
	    .port = PORT,
	    .server.limits = {.workers = WORKERS, .waiting = WAITING, .seconds = SECONDS}};
	int c, status = 0;

	a.server.limits.memory = usual_memory();
	while (!status &&
	       (c = getopt_long(argc, argv, ":ho:" PROCESS_SHORT, options, NULL)) != -1) {
		if (c == '?' || c == ':')
			return option_error("server", c, argv, options);
		if (c == 'h') {
			fputs(help, stdout);
			return MP_EXIT_OK;
		}
		status = take_option(&a, c);
	}
	if (!status && optind == argc && !a.pids)
		status = usage_error("server: which recordings, or which process?");
	if (!status && a.output && !a.pids)
		status = usage_error("server: --output needs --pid or --name");
	if (!status && a.gather.listen && !a.gather.token)
		status = usage_error("server: --gather-at needs --gather");
	if (!status)
		status = (a.gather.token ? run_with_gathering : run_with_files)(&a, argv + optind,
										argc - optind);
	vec_for_each (&a.server.folders, f)
		folder_close(f);
	vec_free(&a.server.folders);
	recordings_free(&a.server.recordings);
	return status;
}
