/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/endpoint.h"

#include "server/answers/control.h"
#include "server/answers/index.h"
#include "server/answers/live.h"

const char *const order_words[] = {"asc", "dsc", NULL};

const struct endpoint endpoints[] = {
    {"", TYPE_TEXT, READ_NONE, false, false, NULL, index_write},
    {"openapi.json", TYPE_JSON, READ_NONE, false, false, NULL, openapi_write},
    {"live", TYPE_JSON, READ_LIVE, false, false, NULL, live_write},
    {"live/timeline", TYPE_JSON, READ_LIVE, false, false, NULL, live_timeline_write},
    {"live/groups", TYPE_JSON, READ_LIVE, false, false, live_groups_parameters, live_groups_write},
    {"live/report", TYPE_JSON, READ_LIVE, false, false, NULL, live_report_write},
    {"live/events", TYPE_EVENTS, READ_STREAM, false, false, NULL, NULL},
    {"flush", TYPE_JSON, ASK_RECORDER, false, false, NULL, control_flush},
    {"mark", TYPE_JSON, ASK_RECORDER, false, false, control_mark_parameters, control_mark},
    {"pause", TYPE_JSON, ASK_RECORDER, false, false, NULL, control_pause},
    {"resume", TYPE_JSON, ASK_RECORDER, false, false, NULL, control_resume},
    {"detach", TYPE_JSON, ASK_RECORDER, false, false, NULL, control_detach},
    {0},
};
