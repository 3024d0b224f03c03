/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The type of a block, as the functions that allocated it name it. */
#ifndef CMD_OPTIONS_STACK_TYPE_H
#define CMD_OPTIONS_STACK_TYPE_H

#include "model/names/shown.h"

/**
 * stack_type() - find the type in the names of a stack's functions
 * Knows the C++ library's functions whose template argument is the type that they allocate:
 * std::allocator<T>::allocate(), std::make_shared<T>(), std::make_unique<T>().
 * Return: the type, to be freed; NULL: no function names one, or out of memory.
 */
char *stack_type(const struct shown_stack *s);

#endif
