/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* perf_event_open(2): one event, its ring, its samples. */
#ifndef TEST_EVENT_H
#define TEST_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ALL_REGS    0xffffffffull /* bit 0: program counter, bit n: register $n */
#define STACK_LARGE 65528	  /* the most that PERF_SAMPLE_STACK_USER takes */

struct event {
	int fd;
	uint8_t *map;
	uint64_t ring_bytes;
};

struct sample {
	uint64_t ip, abi, reg[32];
	const uint8_t *stack; /* in the ring: valid until the next one is taken */
	uint64_t stack_bytes;
};

/* A software event of this thread that gives registers, and @stack_bytes of stack if not 0. */
struct perf_event_attr event_software(uint64_t config, uint64_t period, uint32_t stack_bytes);
/*
 * A probe of @function of this program, at its return if @at_return.
 * Gives samples as above if @samples; it only counts otherwise.
 */
struct perf_event_attr event_probe(const void *function, bool at_return, bool samples,
				   uint32_t stack_bytes);
/* Opens @attr for @pid (0: this thread).  Return: 0 or a negative errno. */
int event_open(struct event *e, struct perf_event_attr *attr, pid_t pid);
void event_close(struct event *e);
/* The next sample, taken out of the ring.  Return: whether there was one. */
bool event_next(struct event *e, struct sample *s);
uint64_t event_count(const struct event *e);

#endif
