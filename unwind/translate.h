/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From libdw's frames to compact rules; table.c's own. */
#ifndef UNWIND_TRANSLATE_H
#define UNWIND_TRANSLATE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>
#include "unwind/table.h"

/* Return: the rule's id in @set; 0 if it cannot be said or the set is full. */
uint32_t translate_frame(Dwarf_Frame *frame, bool signal, struct rule_set *set);

#endif
