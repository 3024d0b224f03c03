/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/file_state.h"
#include "lib/printable.h"
#include "lib/write_all.h"
#include "model/model.h"
#include "server/answers/frames.h"
#include "server/answers/live.h"
#include "server/answers/map_list.h"
#include "server/call.h"
#include "server/endpoint.h"
#include "server/message.h"
#include "server/recordings.h"
#include "server/status.h"

#define BUFFER 65536u

/* The recording that was read. */
struct loaded {
	bool full;
	struct stat file;
	struct call call; /* owns the filter, which the model uses */
	struct model m;
	struct frame_counts *counts;
};

/* Where the bytes of one answer go. */
struct sink {
	int sock, pipe;
	const char *type;
	bool begun;   /* the head was sent */
	bool discard; /* an error's text replaces the answer */
};

/* ------------------------------------------------------------------ sending -- */

static bool reply(int sock, enum reply_kind kind, unsigned int status, const char *type)
{
	struct reply r = {.kind = kind, .status = status};

	snprintf(r.type, sizeof(r.type), "%s", type);
	return send(sock, &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r);
}

static ssize_t on_write(void *cookie, const char *text, size_t n)
{
	struct sink *s = cookie;

	if (s->discard)
		return (ssize_t)n;
	if (!s->begun && !reply(s->sock, REPLY_HEAD, HTTP_OK, s->type))
		return 0;
	s->begun = true;
	return write_all(s->pipe, text, n) ? (ssize_t)n : 0;
}

static bool write_text(int fd, const char *text)
{
	return write_all(fd, text, strlen(text));
}

static bool send_error(struct sink *s, int code, const struct mp_err *err)
{
	const char *text = printable(*err->what ? err->what : strerror(-code));

	return reply(s->sock, REPLY_HEAD, status_of(code, err), TYPE_TEXT) &&
	       write_text(s->pipe, text) &&
	       write_text(s->pipe,
			  code == -ENOMEM ? " (memprof server --memory allows more)\n" : "\n");
}

/* ------------------------------------------------------------------ reading -- */

static void unload(struct loaded *l)
{
	if (!l->full)
		return;
	frame_counts_free(l->counts);
	model_free(&l->m);
	call_free(&l->call);
	memset(l, 0, sizeof(*l));
}

/* A request as it came. */
struct request {
	const char *path, *query;
};

/* Reads the recording of @c, unless @l has it as it is now. */
static int load_model(struct loaded *l, const struct recordings *r, const struct request *q,
		      const struct call *c, struct mp_err *err)
{
	struct model_options o = {.filter = &l->call.filter};
	const char *path = r->at.at[c->recording].path;
	struct stat now;
	int ret;

	if (stat(path, &now))
		return mp_fail(err, MP_EXIT_RECORDING, -EIO, "cannot read the recording: %s",
			       strerror(errno));
	if (l->full && file_is_unchanged(&l->file, &now))
		return 0;
	unload(l);
	if (call_parse(r, q->path, q->query, &l->call, err) != HTTP_OK)
		return -EINVAL;
	ret = l->call.in_map ? map_list_select(path, l->call.map, &l->call.filter, err) : 0;
	if (!ret)
		ret = model_load(path, &o, &l->m, err);
	if (!ret && l->m.info.live_only) {
		model_free(&l->m);
		ret = mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			      "the recording has only the live heap (--live-only), not the calls "
			      "that this answer is about: use memprof report");
	}
	if (ret) {
		call_free(&l->call);
		return ret;
	}
	l->full = true;
	l->file = now;
	return 0;
}

/* ------------------------------------------------------------------ answering -- */

/* What a worker has read, of which at most one is there. */
struct has {
	struct loaded loaded;
	struct running *live;
};

static int write_to(struct sink *sink, struct answer *a, struct mp_err *err)
{
	cookie_io_functions_t io = {.write = on_write};
	int ret;

	a->out = fopencookie(sink, "w", io);
	if (!a->out)
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	setvbuf(a->out, NULL, _IOFBF, BUFFER);
	ret = a->call->endpoint->write(a, err);
	sink->discard = ret && !sink->begun;
	if (fclose(a->out) && !ret)
		ret = -EIO;
	/* Also an empty answer has a head. */
	if (!ret && !sink->begun)
		sink->begun = reply(sink->sock, REPLY_HEAD, HTTP_OK, sink->type);
	return ret;
}

/* Looks at the recording of @c, unless @has does already. */
static int look_at_recording(struct has *has, const struct recordings *r, const struct call *c,
			     struct mp_err *err)
{
	if (has->live && !running_ended(has->live))
		return 0;
	running_close(has->live);
	has->live = NULL;
	return running_open(&r->at.at[c->recording], live_look_event, &has->live, err);
}

static int read_for(struct has *has, const struct recordings *r, const struct request *q,
		    struct answer *a, struct mp_err *err)
{
	int ret;

	switch (a->call->endpoint->reading) {
	case READ_MODEL:
		a->m = &has->loaded.m;
		a->counts = &has->loaded.counts;
		return load_model(&has->loaded, r, q, a->call, err);
	case READ_LIVE:
	case READ_STREAM:
		ret = look_at_recording(has, r, a->call, err);
		if (ret)
			return ret;
		a->live = has->live;
		a->m = running_model(has->live);
		return 0;
	default:
		return 0;
	}
}

/* Answers, and closes the pipe, unless it is for an answer without an end. */
static void answer_call(struct has *has, const struct recordings *r, const struct request *q,
			const struct call *c, struct sink *sink)
{
	/* Those of a look count what it has. */
	struct frame_counts *counts = NULL;
	struct answer a = {.call = c, .recordings = r, .counts = &counts};
	struct mp_err err = {0};
	int ret = read_for(has, r, q, &a, &err);

	if (!ret && c->endpoint->reading == READ_STREAM) {
		reply(sink->sock, REPLY_STREAM, HTTP_OK, c->endpoint->type);
		running_subscribe(has->live, sink->pipe);
		return;
	}
	sink->type = c->endpoint->type;
	if (!ret)
		ret = write_to(sink, &a, &err);
	frame_counts_free(counts);
	if (ret && !sink->begun)
		ret = send_error(sink, ret, &err) ? 0 : -EIO;
	close(sink->pipe);
	reply(sink->sock, ret ? REPLY_FAILED : REPLY_DONE, 0, "");
}

static void answer(struct has *has, const struct recordings *r, const struct request *q, int sock,
		   int pipe)
{
	struct sink sink = {.sock = sock, .pipe = pipe};
	struct mp_err err = {0};
	struct call c;

	/* The server has parsed it already. */
	if (call_parse(r, q->path, q->query, &c, &err) != HTTP_OK) {
		close(pipe);
		reply(sock, REPLY_FAILED, 0, "");
		return;
	}
	answer_call(has, r, q, &c, &sink);
	call_free(&c);
}

/* ------------------------------------------------------------------ process -- */

/* When the machine has no memory left, the kernel should rather end a worker than anything else. */
static void be_first_victim(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4);
	close(fd);
}

/* Leaves nothing of the server in the worker: neither its clients' connections nor its way to handle
 * signals. */
static void leave_server(int *sock, uint64_t memory)
{
	struct rlimit data, none = {0, 0};
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "memprof-worker");
	if (dup2(*sock, 3) == 3)
		*sock = 3;
	close_range(4, ~0u, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/* Commands that the worker starts have the hard limit: own_command.h. */
	if (memory && !getrlimit(RLIMIT_DATA, &data) && memory < data.rlim_cur) {
		data.rlim_cur = memory;
		setrlimit(RLIMIT_DATA, &data);
	}
	setrlimit(RLIMIT_CORE, &none);
	be_first_victim();
}

/* Waits for a request, and looks at a recording in progress meanwhile. */
static void wait_for_request(int sock, struct running *live)
{
	struct pollfd p[2] = {{.fd = sock, .events = POLLIN}, {.fd = -1, .events = POLLIN}};

	do {
		int ms = live ? running_serve(live) : -1;

		p[1].fd = live ? running_fd(live) : -1;
		if (poll(p, 2, ms) < 0)
			p[0].revents = 0;
	} while (!p[0].revents);
}

void worker_run(int sock, const struct recordings *r, uint64_t memory)
{
	static char text[MESSAGE_MOST];
	struct has has = {0};
	struct request q;
	long n;
	int pipe;

	leave_server(&sock, memory);
	for (;;) {
		wait_for_request(sock, has.live);
		n = message_receive(sock, text, sizeof(text) - 1, &pipe);
		if (n <= 0)
			break;
		text[n] = 0;
		q = (struct request){text, text + strlen(text) + 1};
		answer(&has, r, &q, sock, pipe);
	}
	running_close(has.live);
	_exit(0);
}
