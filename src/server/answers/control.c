/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/answers/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "control/requests.h"
#include "server/answers/ending.h"
#include "server/running.h"
#include "server/recordings.h"

#define LONGEST_MARK 400u

const struct parameter control_mark_parameters[] = {{"name", PARAMETER_TEXT, 0, NULL}, {0}};

static int find_process(const struct answer *a, pid_t *pid, struct mp_err *err)
{
	return running_find(&a->recordings->at.at[a->call->recording], pid, err);
}

static int send_request(struct answer *a, const char *line, struct mp_err *err)
{
	struct recorder_boundary b = {0};
	struct ss_journal j;
	pid_t pid;
	yajl_gen g;
	int ret = find_process(a, &pid, err);

	if (!ret)
		ret = request_send(pid, line, &j, &b, err);
	if (!ret)
		ret = answer_begin(a, &g, err);
	if (ret)
		return ret;
	yajl_gen_map_open(g);
	json_number(g, "time_ns", b.time_ns);
	json_number(g, "events", b.events);
	json_number(g, "file_bytes", b.file_bytes);
	yajl_gen_map_close(g);
	return answer_end(a, g, 0, err);
}

int answer_flush(struct answer *a, struct mp_err *err)
{
	return send_request(a, "flush", err);
}

int answer_pause(struct answer *a, struct mp_err *err)
{
	return send_request(a, "pause", err);
}

int answer_resume(struct answer *a, struct mp_err *err)
{
	return send_request(a, "resume", err);
}

int answer_mark(struct answer *a, struct mp_err *err)
{
	const char *name = call_text(a->call, "name");
	char line[LONGEST_MARK + 8];

	if (!name || !*name || strlen(name) > LONGEST_MARK || strchr(name, '\n'))
		return mp_fail(err, MP_EXIT_USAGE, -EINVAL,
			       "name: a mark has a name, one line of at most %u bytes",
			       LONGEST_MARK);
	snprintf(line, sizeof(line), "mark %s", name);
	return send_request(a, line, err);
}

int answer_detach(struct answer *a, struct mp_err *err)
{
	struct ss_journal j;
	pid_t pid;
	int ret = find_process(a, &pid, err);

	if (!ret)
		ret = request_end(pid, &j, err);
	if (!ret)
		fputs("{}", a->out);
	return ret;
}
