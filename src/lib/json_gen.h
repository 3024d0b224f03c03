/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by all writers of JSON: yajl output to a stream, and values as defined in doc/json.md. */
#ifndef LIB_JSON_GEN_H
#define LIB_JSON_GEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <yajl/yajl_gen.h>

/* Return: a generator that writes to @out, to be freed by yajl_gen_free(); NULL when out of memory.
 */
yajl_gen json_begin(FILE *out, bool beautify);

/* Writes a key.  @s: ASCII. */
void json_name(yajl_gen g, const char *s);

/* Writes a text, as an element of an array.  Invalid UTF-8 becomes '?'.  Out of memory: null. */
void json_string(yajl_gen g, const char *s);
/* Each writes a key and its value.  A NULL text becomes null; invalid UTF-8 becomes '?'. */
void json_number(yajl_gen g, const char *key, uint64_t v);
/* 0, which means that the number is not known, becomes null. */
void json_known(yajl_gen g, const char *key, uint64_t v);
void json_integer(yajl_gen g, const char *key, int64_t v);
/* Writes millionths as a number from 0 on, such as 0.01. */
void json_part(yajl_gen g, const char *key, uint32_t ppm);
void json_text(yajl_gen g, const char *key, const char *v);
void json_boolean(yajl_gen g, const char *key, bool v);
/* {"count", "bytes"} */
void json_amount(yajl_gen g, const char *key, uint64_t count, uint64_t bytes);
/* {"secs", "fract_nsecs"} */
void json_timeval(yajl_gen g, const char *key, uint64_t ns);
/* Writes 16 hexadecimal digits, as an element of an array. */
void json_hex(yajl_gen g, uint64_t v);
/* Writes "address", and "address_s": 16 hexadecimal digits, since addresses do not fit in a double.
 */
void json_address(yajl_gen g, uint64_t v);

#endif
