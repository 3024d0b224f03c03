/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What each key does to the state. */
#ifndef TOP_KEYS_H
#define TOP_KEYS_H

struct top;
struct screen_key;

/* Handles a key that the user pressed. */
void keys_press(struct top *t, const struct screen_key *k);
#endif
