/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The formats of `memprof report` (export/format.h) as answers. */
#ifndef SERVER_ANSWERS_EXPORTS_H
#define SERVER_ANSWERS_EXPORTS_H

#include "server/endpoint.h"

/* The words of the parameter "cost". */
extern const char *const cost_words[];
extern const struct parameter cost_parameters[], text_parameters[];

answer_write answer_flamegraph;
answer_write answer_icicle;
answer_write answer_collapsed;
answer_write answer_heaptrack;
answer_write answer_replay;
answer_write answer_pprof;
answer_write answer_speedscope;
answer_write answer_csv;
answer_write answer_plot;
answer_write answer_html;
answer_write answer_json;
answer_write answer_text;
answer_write answer_ascii_tree;

/* Reads the parameter "cost".  Return: 0 with *@cost set, -1 if it is not given; or -EINVAL with @err. */
int answer_cost(const struct answer *a, int *cost, struct mp_err *err);

#endif
