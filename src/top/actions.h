/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What keys do beside moving in the view: requests to the recorder, the filter, the report.  Each tells
 * in the last line what it did, or why it could not. */
#ifndef TOP_ACTIONS_H
#define TOP_ACTIONS_H

#include "top/prompt.h"

struct top;

void act_freeze(struct top *t);
void act_pause(struct top *t);
void act_sample(struct top *t);
/* Asks for what the prompt is for. */
void act_ask(struct top *t, enum prompt_for what);
/* Does what the prompt asked for, with the text in it. */
void act_on_prompt(struct top *t);
/* Sets the filter; the table is not made again.  @text: a regular expression; "": no filter.  Return:
 * 0, or a negative errno after it told the error, with the filter unchanged. */
int act_filter(struct top *t, const char *text);

#endif
