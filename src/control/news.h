/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a recorder reports to its follower (control/follow.h). */
#ifndef CONTROL_NEWS_H
#define CONTROL_NEWS_H

#include <stdbool.h>
#include <stdint.h>
#include "control/children.h"
#include "control/options.h"
#include "control/state.h"
#include "inject/find.h"
#include "lib/err.h"

enum news_kind { NEWS_BEGUN, NEWS_ENDED, NEWS_FAILED };

/* Written to recording_options.news_fd; small enough for an atomic write to a pipe. */
struct recording_news {
	uint8_t kind;	/* enum news_kind */
	uint8_t reason; /* NEWS_ENDED: enum mp_end_reason */
	struct session_id id;
	struct child_recording recording; /* NEWS_BEGUN: pid and path; NEWS_ENDED: all fields */
	struct mp_err why;		  /* NEWS_FAILED: why nothing was recorded */
};

/* Reports to the follower that the recording has begun (@reason 0) or why it ended. */
void recording_tell(const struct recording *rec, const struct recording_options *o, uint8_t reason);
/* Reports that the recording could not begin: for a followed process to the follower, else through
 * the notices.  Return: the enum mp_exit of @err. */
int recording_failed(const struct recording_options *o, const struct mp_err *err);
/* Has the follower ended?  Then nothing else will end this recorder. */
bool recording_is_deserted(const struct recording *rec);

#endif
