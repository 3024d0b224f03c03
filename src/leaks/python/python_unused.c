/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/python/python_unused.h"

#include "leaks/python/python_layout.h"

/* Of PyVarObject, in words; and where the items of its types begin, in bytes. */
#define VAR_LENGTH  2u
#define BYTES_ITEMS 32u
#define INT_ITEMS   24u
#define TUPLE_ITEMS 24u

/* Return: the digits of an int, of 4 bytes. */
static uint64_t digits(uint32_t minor, uint64_t length)
{
	/* From 3.12 on there are three bits more; before, the length of a negative number is negative. */
	uint64_t n = minor >= 12 ? length >> 3 : (int64_t)length < 0 ? -length : length;

	return n ? n : 1;
}

/* Return: bytes of the object; 0: not known. */
static uint64_t object_size(uint32_t minor, const struct python_type *type, const uint64_t *object)
{
	const uint64_t length = object[VAR_LENGTH], state = object[TEXT_STATE];

	switch (type->kind) {
	case PYTHON_STR:
		return state & TEXT_COMPACT
			   ? text_start(minor, state) + (object[TEXT_LENGTH] + 1) * TEXT_KIND(state)
			   : 0;
	case PYTHON_BYTES:
		return BYTES_ITEMS + length + 1;
	case PYTHON_INT:
		return INT_ITEMS + 4 * digits(minor, length);
	case PYTHON_TUPLE:
		return TUPLE_ITEMS + 8 * length;
	default:
		return type->fixed ? type->size : 0;
	}
}

uint16_t python_unused_by_object(const struct python_types *t, const struct python_type *type,
				 const uint64_t *head, uint64_t size)
{
	const uint64_t room = size - type->before;
	const uint64_t used = object_size(t->minor, type, head + type->before / 8);

	return used && used < room && room - used <= PYTHON_PADDING ? (uint16_t)(room - used) : 0;
}

uint16_t python_unused_by_items(const uint64_t *list, uint64_t size)
{
	const uint64_t length = list[LIST_SIZE], room = list[LIST_ROOM];

	/* Damaged, or just being changed. */
	if (length > room || room > size / 8)
		return 0;
	return size - 8 * length < UINT16_MAX ? (uint16_t)(size - 8 * length) : UINT16_MAX;
}
