/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The formats of `memprof report` (export/format.h) as answers. */
#ifndef SERVER_ANSWERS_EXPORTS_H
#define SERVER_ANSWERS_EXPORTS_H

#include "server/endpoint.h"

extern const struct parameter cost_parameters[], text_parameters[];

answer_write export_flamegraph;
answer_write export_icicle;
answer_write export_collapsed;
answer_write export_heaptrack;
answer_write export_replay;
answer_write export_pprof;
answer_write export_speedscope;
answer_write export_csv;
answer_write export_plot;
answer_write export_json;
answer_write export_text;
answer_write export_ascii_tree;

/* Reads the parameter "cost".  Return: 0 with *@cost set, -1 if it is not given; or -EINVAL with @err. */
int answer_cost(const struct answer *a, int *cost, struct mp_err *err);

#endif
