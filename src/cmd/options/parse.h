/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parses the values of options. */
#ifndef CMD_OPTIONS_PARSE_H
#define CMD_OPTIONS_PARSE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Parses "30s", "500ms", "2m", "1h", "45" to milliseconds.  Return: false if @text is not a
 * duration. */
bool parse_duration(const char *text, uint64_t *ms);
/* Parses "64k", "2M", "1G", "4096" to bytes.  Return: false if @text is not a size. */
bool parse_bytes(const char *text, uint64_t *bytes);
/* Parses "1%", "0.5%" or "1" (percent), at most 100%, to millionths.  Return: false if @text is not such a
 * part. */
bool parse_part(const char *text, uint32_t *ppm);
/* Parses a number below 2^32.  Return: false if @text is not one. */
bool parse_count(const char *text, uint32_t *count);
/* Parses a process id.  Return: false if @text is not one. */
bool parse_pid(const char *text, pid_t *pid);

#endif
