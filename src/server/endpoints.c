/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "server/endpoint.h"

#include <stddef.h>
#include "export/allocations.h"
#include "export/groups.h"
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
#include "server/answers/list.h"
#include "server/answers/live.h"
#include "server/answers/mallopts.h"
#include "server/answers/maps.h"
#include "server/answers/raw_allocations.h"
#include "server/answers/regions.h"
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
static const struct parameter of_backtraces[] = {
	{"backtrace_depth_min", PARAMETER_NUMBER, 0, NULL},
	{"backtrace_depth_max", PARAMETER_NUMBER, 0, NULL},
	{"function_regex", PARAMETER_REGEX, 0, NULL},
	{"source_regex", PARAMETER_REGEX, 0, NULL},
	{"negative_function_regex", PARAMETER_REGEX, 0, NULL},
	{"negative_source_regex", PARAMETER_REGEX, 0, NULL},
	FRAME_PARAMETERS, {0}};
/* clang-format on */

const struct endpoint endpoints[] = {
    {"", TYPE_TEXT, READ_NONE, false, false, NULL, answer_index},
    {"openapi.json", TYPE_JSON, READ_NONE, false, false, NULL, answer_openapi},
    {"live", TYPE_JSON, READ_LIVE, false, false, NULL, answer_live},
    {"live/timeline", TYPE_JSON, READ_LIVE, false, false, NULL, answer_live_timeline},
    {"live/groups", TYPE_JSON, READ_LIVE, false, false, live_groups_parameters, answer_live_groups},
    {"live/report", TYPE_JSON, READ_LIVE, false, false, NULL, answer_live_report},
    {"live/events", TYPE_EVENTS, READ_STREAM, false, false, NULL, NULL},
    {"flush", TYPE_JSON, ASK_RECORDER, false, false, NULL, answer_flush},
    {"mark", TYPE_JSON, ASK_RECORDER, false, false, control_mark_parameters, answer_mark},
    {"pause", TYPE_JSON, ASK_RECORDER, false, false, NULL, answer_pause},
    {"resume", TYPE_JSON, ASK_RECORDER, false, false, NULL, answer_resume},
    {"detach", TYPE_JSON, ASK_RECORDER, false, false, NULL, answer_detach},
    {"list", TYPE_JSON, READ_NONE, false, false, NULL, answer_list},
    {"timeline", TYPE_JSON, READ_MODEL, false, false, NULL, answer_timeline},
    {"timeline_leaked", TYPE_JSON, READ_MODEL, false, false, NULL, answer_timeline_leaked},
    {"allocations", TYPE_JSON, READ_MODEL, true, false, of_allocations, answer_allocations},
    {"allocation_groups", TYPE_JSON, READ_MODEL, true, false, of_groups, answer_groups},
    {"backtrace/{number}", TYPE_JSON, READ_MODEL, false, false, of_frames, answer_backtrace},
    {"backtraces", TYPE_JSON, READ_MODEL, false, false, of_backtraces, answer_backtraces},
    {"raw_allocations", TYPE_JSON, READ_MODEL, false, false, NULL, answer_raw_allocations},
    {"mallopts", TYPE_JSON, READ_MODEL, false, false, of_frames, answer_mallopts},
    {"tree", TYPE_JSON, READ_MODEL, true, false, of_frames, answer_tree},
    {"regions", TYPE_JSON, READ_MODEL, true, false, NULL, answer_regions},
    {"dynamic_constants", TYPE_JSON_UTF8, READ_MODEL, false, true, NULL, answer_dynamic_constants},
    {"dynamic_statics", TYPE_JSON_UTF8, READ_MODEL, false, true, NULL, answer_dynamic_statics},
    {"dynamic_constants_ascii_tree", TYPE_TEXT, READ_MODEL, false, true, NULL,
     answer_dynamic_constants_ascii_tree},
    {"dynamic_statics_ascii_tree", TYPE_TEXT, READ_MODEL, false, true, NULL,
     answer_dynamic_statics_ascii_tree},
    /* bytehound's; the media types are its, too */
    {"maps", TYPE_JSON, READ_MODEL, false, false, maps_parameters, maps_answer},
    {"timeline_maps", TYPE_JSON, READ_MODEL, false, false, NULL, timeline_maps_answer},
    {"allocation_ascii_tree", TYPE_TEXT, READ_MODEL, true, false, NULL, export_ascii_tree},
    {"export/flamegraph", TYPE_SVG, READ_MODEL, true, true, cost_parameters, export_flamegraph},
    {"export/flamegraph.pl", TYPE_BINARY, READ_MODEL, true, true, cost_parameters,
     export_collapsed},
    {"export/heaptrack", TYPE_BINARY, READ_MODEL, true, true, NULL, export_heaptrack},
    {"export/replay", TYPE_BINARY, READ_MODEL, true, true, NULL, export_replay},
    /* memprof's own */
    {"export/icicle", TYPE_SVG, READ_MODEL, true, true, cost_parameters, export_icicle},
    {"export/collapsed", TYPE_TEXT, READ_MODEL, true, true, cost_parameters, export_collapsed},
    {"export/pprof", TYPE_GZIP, READ_MODEL, true, true, NULL, export_pprof},
    {"export/speedscope", TYPE_JSON, READ_MODEL, true, true, cost_parameters, export_speedscope},
    {"export/csv", TYPE_CSV, READ_MODEL, true, true, cost_parameters, export_csv},
    {"export/plot", TYPE_SVG, READ_MODEL, true, true, NULL, export_plot},
    {"export/json", TYPE_JSON, READ_MODEL, true, true, NULL, export_json},
    {"export/text", TYPE_TEXT, READ_MODEL, true, true, text_parameters, export_text},
    {"export/diff", TYPE_SVG, READ_MODEL, true, true, diff_parameters, diff_flame_answer},
    {"report", TYPE_JSON, READ_MODEL, true, false, NULL, export_json},
    {"libraries", TYPE_JSON, READ_MODEL, true, false, NULL, libraries_answer},
    {"threads", TYPE_JSON, READ_MODEL, true, false, NULL, threads_answer},
    {"sizes", TYPE_JSON, READ_MODEL, true, false, NULL, sizes_answer},
    {"samples", TYPE_JSON, READ_MODEL, false, false, NULL, samples_answer},
    {"marks", TYPE_JSON, READ_MODEL, false, false, NULL, marks_answer},
    {"losses", TYPE_JSON, READ_MODEL, false, false, NULL, losses_answer},
    {"info", TYPE_JSON, READ_MODEL, false, false, NULL, info_answer},
    {"growth", TYPE_JSON, READ_MODEL, true, false, growth_parameters, growth_answer},
    {"peek", TYPE_TEXT, READ_MODEL, true, false, peek_parameters, peek_answer},
    {"annotate", TYPE_TEXT, READ_MODEL, true, false, annotate_parameters, annotate_answer},
    {"diff", TYPE_JSON, READ_MODEL, true, false, diff_parameters, diff_answer},
    {0},
};
