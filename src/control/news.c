/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control/news.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>
#include "control/notices.h"
#include "control/summary.h"
#include "record/recorder.h"

static void send_news(const struct recording_options *o, const struct recording_news *news)
{
	if (o->news_fd && write(o->news_fd, news, sizeof(*news)) != (ssize_t)sizeof(*news))
		return; /* the follower is gone */
}

void recording_tell(const struct recording *rec, const struct recording_options *o, uint8_t reason)
{
	struct recording_news news = {.kind = reason ? NEWS_ENDED : NEWS_BEGUN,
				      .reason = reason,
				      .id = rec->id,
				      .recording.pid = rec->t->pid};

	if (reason && rec->r) {
		struct recorder_progress p = recorder_progress(rec->r);

		news.recording.allocations = p.allocs;
		news.recording.mapped_bytes = summary_own_heap(&rec->s, &p) ? p.mapped_bytes : 0;
	}
	snprintf(news.recording.path, sizeof(news.recording.path), "%.*s", CHILD_PATH - 1,
		 rec->path);
	send_news(o, &news);
}

int recording_failed(const struct recording_options *o, const struct mp_err *err)
{
	const struct recording_news news = {.kind = NEWS_FAILED, .why = *err};

	if (!o->child)
		return notice_error(o->notices, err);
	send_news(o, &news);
	return err->exit ? (int)err->exit : MP_EXIT_FAILURE;
}

bool recording_is_deserted(const struct recording *rec)
{
	struct pollfd p = {.fd = rec->o->news_fd};

	return p.fd && poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}
