/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/delivery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "attach/proc/procfs.h"
#include "control/notices.h"
#include "control/output_name.h"
#include "lib/printable.h"
#include "stream/sender.h"

#define WAIT_MS 30000 /* for memprof flush */

static void make_name(const struct recording *rec, const struct recording_options *o,
		      char name[WIRE_NAME + 1])
{
	char host[65] = "", pattern[128], full[4096];
	const char *slash;

	gethostname(host, sizeof(host) - 1);
	for (char *p = host; *p; p++)
		*p = *p == '%' || *p == '/' ? '_' : *p;
	snprintf(pattern, sizeof(pattern), "%s-%%e-%%p-%%t.memprof", host);
	output_name(o->path ? o->path : pattern, rec->t->pid, o->count, o->again, full,
		    sizeof(full));
	slash = strrchr(full, '/');
	snprintf(name, WIRE_NAME + 1, "%.*s", (int)WIRE_NAME, slash ? slash + 1 : full);
}

int delivery_open(struct recording *rec, const struct recording_options *o, struct mp_err *err)
{
	struct sender_config config = {.to = o->to,
				       .token_file = o->token_file,
				       .window = o->send_buffer,
				       .deliver_ms = o->deliver_ms,
				       .pid = (uint32_t)rec->t->pid};

	memcpy(config.id, rec->file_id, sizeof(config.id));
	make_name(rec, o, config.name);
	snprintf(config.program, sizeof(config.program), "%s", rec->t->status.name);
	snprintf(rec->path, sizeof(rec->path), "%s/%s", o->to ? o->to : "receiver", config.name);
	if (o->announce)
		notice(o->notices,
		       "waiting for a receiver to connect (memprof gather --find); Ctrl-C ends "
		       "memprof, the process has not been touched");
	return sender_open(&config, &rec->sender, &rec->sender_fd, err);
}

void delivery_begun(struct recording *rec)
{
	if (rec->sender_fd >= 0)
		close(rec->sender_fd);
	rec->sender_fd = -1;
}

void delivery_tell(struct recording *rec)
{
	struct sender_state now;

	if (!rec->sender)
		return;
	sender_look(rec->sender, &now);
	if (now.connected != rec->sender_away)
		return;
	rec->sender_away = !now.connected;
	if (now.connected)
		notice(rec->o->notices, "connected to the receiver again");
	else
		notice(rec->o->notices,
		       "no connection to the receiver: %s; memprof tries again, and the process "
		       "does not wait",
		       printable(now.why));
}

int delivery_wait(void *arg, uint64_t bytes)
{
	struct deadline deadline = deadline_in_ms(WAIT_MS);
	struct recording *rec = arg;

	return rec->sender ? sender_wait(rec->sender, bytes, &deadline) : 0;
}

void delivery_ending(struct recording *rec, bool failed)
{
	if (rec->sender && failed)
		sender_cancel(rec->sender);
	else if (rec->sender)
		sender_ending(rec->sender);
}

int delivery_finish(struct recording *rec, struct mp_err *err)
{
	delivery_begun(rec);
	return rec->sender ? sender_finish(rec->sender, err) : 0;
}

void delivery_free(struct recording *rec)
{
	if (rec->sender)
		sender_free(rec->sender);
}
