/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Takes from a recording what is not the history of blocks: stacks, names, mappings, samples,
 * losses. */
#ifndef MODEL_FACTS_H
#define MODEL_FACTS_H

#include "model/model.h"

/* Both add the facts to @m.  Return: 0 or a negative errno. */
int facts_event(struct model *m, const struct mp_event *ev);
int facts_item(struct model *m, const struct mpf_item *it);

#endif
