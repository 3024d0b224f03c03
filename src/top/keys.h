/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What each key does to the state. */
#ifndef TOP_KEYS_H
#define TOP_KEYS_H

struct top;
struct screen_key;

/* Handles a key that the user pressed. */
void keys_press(struct top *t, const struct screen_key *k);
/* The last of the prompt's keys was Enter: does what it asked for.  In actions.c. */
void act_on_prompt(struct top *t);
/* Do what their key says, and tell it in the last line.  In actions.c. */
void act_pause(struct top *t);
void act_sample(struct top *t);
void act_freeze(struct top *t);
void act_ask(struct top *t, int what);
/* Return: 0, or a negative errno after it told the error: the pattern is wrong. */
int act_filter(struct top *t, const char *text);

#endif
