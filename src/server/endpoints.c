/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/endpoint.h"

#include <stddef.h>
#include "export/lists/allocations.h"
#include "export/lists/groups.h"
#include "server/answers/allocations.h"
#include "server/answers/backtraces.h"
#include "server/answers/compare.h"
#include "server/answers/control.h"
#include "server/answers/dynamic.h"
#include "server/answers/exports.h"
#include "server/answers/functions.h"
#include "server/answers/groups.h"
#include "server/answers/growth.h"
#include "server/answers/index.h"
#include "server/answers/inspect.h"
#include "server/answers/list.h"
#include "server/answers/live.h"
#include "server/answers/mallopts.h"
#include "server/answers/maps.h"
#include "server/answers/quick.h"
#include "server/answers/raw_allocations.h"
#include "server/answers/regions.h"
#include "server/answers/stack_filter.h"
#include "server/answers/sums.h"
#include "server/answers/timelines.h"
#include "server/answers/tree.h"

#define TYPE_GZIP "application/gzip"
#define TYPE_CSV  "text/csv; charset=utf-8"

/* clang-format off */
static const struct parameter of_frames[] = {FRAME_PARAMETERS, {0}};
static const struct parameter of_allocations[] = {
	LIST_PARAMETERS(allocation_keys), FRAME_PARAMETERS, {0}};
static const struct parameter of_groups[] = {
	LIST_PARAMETERS(group_keys), FRAME_PARAMETERS,
	{"generate_graphs", PARAMETER_BOOL, 0, NULL}, {0}};
static const struct parameter of_backtraces[] = {STACK_PARAMETERS, FRAME_PARAMETERS, {0}};
/* clang-format on */

#define F ENDPOINT_FILTERED
#define N ENDPOINT_NAMED

const struct endpoint endpoints[] = {
    {"", TYPE_TEXT, READ_NONE, 0, NULL, answer_index},
    {"openapi.json", TYPE_JSON, READ_NONE, 0, NULL, answer_openapi},
    /* bytehound's, with its media types */
    {"list", TYPE_JSON, READ_NONE, 0, NULL, answer_list},
    {"timeline", TYPE_JSON, READ_MODEL, 0, NULL, answer_timeline},
    {"timeline_leaked", TYPE_JSON, READ_MODEL, 0, NULL, answer_timeline_leaked},
    {"allocations", TYPE_JSON, READ_MODEL, F, of_allocations, answer_allocations},
    {"allocation_groups", TYPE_JSON, READ_MODEL, F, of_groups, answer_groups},
    {"backtrace/{number}", TYPE_JSON, READ_MODEL, 0, of_frames, answer_backtrace},
    {"backtraces", TYPE_JSON, READ_MODEL, 0, of_backtraces, answer_backtraces},
    {"raw_allocations", TYPE_JSON, READ_MODEL, 0, NULL, answer_raw_allocations},
    {"mallopts", TYPE_JSON, READ_MODEL, 0, of_frames, answer_mallopts},
    {"tree", TYPE_JSON, READ_MODEL, F, of_frames, answer_tree},
    {"regions", TYPE_JSON, READ_MODEL, F, NULL, answer_regions},
    {"dynamic_constants", TYPE_JSON_UTF8, READ_MODEL, N, NULL, answer_dynamic_constants},
    {"dynamic_statics", TYPE_JSON_UTF8, READ_MODEL, N, NULL, answer_dynamic_statics},
    {"dynamic_constants_ascii_tree", TYPE_TEXT, READ_MODEL, N, NULL,
     answer_dynamic_constants_ascii_tree},
    {"dynamic_statics_ascii_tree", TYPE_TEXT, READ_MODEL, N, NULL,
     answer_dynamic_statics_ascii_tree},
    {"maps", TYPE_JSON, READ_MODEL, 0, maps_parameters, answer_maps},
    {"timeline_maps", TYPE_JSON, READ_MODEL, 0, NULL, answer_timeline_maps},
    {"allocation_ascii_tree", TYPE_TEXT, READ_MODEL, F, NULL, answer_ascii_tree},
    {"export/flamegraph", TYPE_SVG, READ_MODEL, F | N, cost_parameters, answer_flamegraph},
    {"export/flamegraph.pl", TYPE_BINARY, READ_MODEL, F | N, cost_parameters, answer_collapsed},
    {"export/heaptrack", TYPE_BINARY, READ_MODEL, F | N, NULL, answer_heaptrack},
    {"export/replay", TYPE_BINARY, READ_MODEL, F | N, NULL, answer_replay},
    /* what memprof knows beside that */
    {"export/icicle", TYPE_SVG, READ_MODEL, F | N, cost_parameters, answer_icicle},
    {"export/collapsed", TYPE_TEXT, READ_MODEL, F | N, cost_parameters, answer_collapsed},
    {"export/pprof", TYPE_GZIP, READ_MODEL, F | N, NULL, answer_pprof},
    {"export/speedscope", TYPE_JSON, READ_MODEL, F | N, cost_parameters, answer_speedscope},
    {"export/csv", TYPE_CSV, READ_MODEL, F | N, cost_parameters, answer_csv},
    {"export/plot", TYPE_SVG, READ_MODEL, F | N, NULL, answer_plot},
    {"export/json", TYPE_JSON, READ_MODEL, F | N, NULL, answer_json},
    {"export/text", TYPE_TEXT, READ_MODEL, F | N, text_parameters, answer_text},
    {"export/html", TYPE_HTML, READ_MODEL, F | N, NULL, answer_html},
    {"export/diff", TYPE_SVG, READ_MODEL, F | N, diff_parameters, answer_diff_flame},
    {"report", TYPE_JSON, READ_MODEL, F, NULL, answer_json},
    {"libraries", TYPE_JSON, READ_MODEL, F, NULL, answer_libraries},
    {"threads", TYPE_JSON, READ_MODEL, F, NULL, answer_threads},
    {"sizes", TYPE_JSON, READ_MODEL, F, NULL, answer_sizes},
    {"samples", TYPE_JSON, READ_MODEL, 0, NULL, answer_samples},
    {"marks", TYPE_JSON, READ_MODEL, 0, NULL, answer_marks},
    {"losses", TYPE_JSON, READ_MODEL, 0, NULL, answer_losses},
    {"info", TYPE_JSON, READ_ITSELF, 0, NULL, answer_info},
    {"quick", TYPE_JSON, READ_ITSELF, 0, NULL, answer_quick},
    {"growth", TYPE_JSON, READ_MODEL, F, growth_parameters, answer_growth},
    {"peek", TYPE_TEXT, READ_MODEL, F, peek_parameters, answer_peek},
    {"annotate", TYPE_TEXT, READ_MODEL, F, annotate_parameters, answer_annotate},
    {"diff", TYPE_JSON, READ_MODEL, F, diff_parameters, answer_diff},
    /* about a recording in progress */
    {"live", TYPE_JSON, READ_LIVE, 0, NULL, answer_live},
    {"live/timeline", TYPE_JSON, READ_LIVE, 0, NULL, answer_live_timeline},
    {"live/groups", TYPE_JSON, READ_LIVE, 0, live_groups_parameters, answer_live_groups},
    {"live/report", TYPE_JSON, READ_LIVE, 0, NULL, answer_live_report},
    {"live/events", TYPE_EVENTS, READ_STREAM, 0, NULL, NULL},
    {"flush", TYPE_JSON, ASK_RECORDER, 0, NULL, answer_flush},
    {"mark", TYPE_JSON, ASK_RECORDER, 0, control_mark_parameters, answer_mark},
    {"pause", TYPE_JSON, ASK_RECORDER, 0, NULL, answer_pause},
    {"resume", TYPE_JSON, ASK_RECORDER, 0, NULL, answer_resume},
    {"detach", TYPE_JSON, ASK_RECORDER, 0, NULL, answer_detach},
    {"leaks", TYPE_JSON, ASK_RECORDER, 0, NULL, answer_leaks},
    {"retained", TYPE_JSON, ASK_RECORDER, 0, NULL, answer_retained},
    {0},
};
