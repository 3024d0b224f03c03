/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What answers of several endpoints say about their recording, and how they end. */
#ifndef SERVER_ANSWERS_ENDING_H
#define SERVER_ANSWERS_ENDING_H

#include "lib/json_gen.h"
#include "server/endpoint.h"

/* Begins the JSON of an answer.  Return: 0 with *@g to be freed by answer_end(); or -ENOMEM with @err. */
int answer_begin(struct answer *a, yajl_gen *g, struct mp_err *err);
/* Frees @g.  @ret: how the answer went until now, with @err filled if it failed.  Return: @ret; or
 * -EIO with @err if the client does not read any more. */
int answer_end(struct answer *a, yajl_gen g, int ret, struct mp_err *err);
int answer_no_memory(struct mp_err *err);
/* @ret: of a function of export/ that wrote the answer.  Return: @ret, with @err filled if it failed. */
int answer_wrote(int ret, struct mp_err *err);

/* Writes "estimated", if the sums of the answer are estimates. */
void answer_estimated(const struct answer *a, yajl_gen g);
/* Writes "culled_count", if there are blocks that pass the filter and are not in the list, because
 * the recording has only their sums. */
void answer_culled(const struct answer *a, yajl_gen g);
/* Return: whether the recording has a stack with this id. */
bool answer_has_stack(const struct answer *a, uint64_t id);

#endif
