/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "event.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_BYTES (4ull << 20)
#define UPROBE	   "/sys/bus/event_source/devices/uprobe/type"

static void add_samples(struct perf_event_attr *attr, uint32_t stack_bytes)
{
	attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER;
	attr->sample_regs_user = ALL_REGS;
	if (stack_bytes) {
		attr->sample_type |= PERF_SAMPLE_STACK_USER;
		attr->sample_stack_user = stack_bytes;
	}
}

struct perf_event_attr event_software(uint64_t config, uint64_t period, uint32_t stack_bytes)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr)};

	attr.config = config;
	attr.sample_period = period;
	add_samples(&attr, stack_bytes);
	return attr;
}

static uint32_t probe_type(void)
{
	FILE *f = fopen(UPROBE, "r");
	unsigned int type = 0;

	if (!f || fscanf(f, "%u", &type) != 1) {
		printf("Bail out! " UPROBE ": %s\n", strerror(errno));
		exit(1);
	}
	fclose(f);
	return type;
}

static uint64_t file_offset(const void *function)
{
	const ElfW(Phdr) *ph = (const void *)getauxval(AT_PHDR);
	uint64_t at = (uintptr_t)function;

	for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
		if (ph[i].p_type == PT_LOAD && at - ph[i].p_vaddr < ph[i].p_filesz)
			return at - ph[i].p_vaddr + ph[i].p_offset;
	abort();
}

struct perf_event_attr event_probe(const void *function, bool at_return, bool samples,
				   uint32_t stack_bytes)
{
	struct perf_event_attr attr = {.type = probe_type(), .size = sizeof(attr)};

	attr.config = at_return;
	attr.config1 = (uintptr_t) "/proc/self/exe";
	attr.config2 = file_offset(function);
	if (samples) {
		attr.sample_period = 1;
		add_samples(&attr, stack_bytes);
	}
	return attr;
}

int event_open(struct event *e, struct perf_event_attr *attr, pid_t pid)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	*e = (struct event){.ring_bytes = RING_BYTES};
	e->fd = (int)syscall(SYS_perf_event_open, attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (e->fd < 0)
		return -errno;
	e->map = mmap(NULL, RING_BYTES + page, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	if (e->map == MAP_FAILED) {
		int ret = -errno;

		close(e->fd);
		return ret;
	}
	return 0;
}

void event_close(struct event *e)
{
	munmap(e->map, e->ring_bytes + (uint64_t)sysconf(_SC_PAGESIZE));
	close(e->fd);
}

static uint64_t take(const uint8_t **at)
{
	uint64_t value;

	memcpy(&value, *at, sizeof(value));
	*at += sizeof(value);
	return value;
}

/* linux/perf_event.h, PERF_RECORD_SAMPLE: in the order of the bits of sample_type. */
static void parse(const struct perf_event_header *h, struct sample *s)
{
	const uint8_t *at = (const uint8_t *)(h + 1), *end = (const uint8_t *)h + h->size;

	*s = (struct sample){.ip = take(&at), .abi = take(&at)};
	for (int i = 0; s->abi && i < 32; i++)
		s->reg[i] = take(&at);
	if (at == end)
		return;
	s->stack_bytes = take(&at);
	s->stack = at;
	at += s->stack_bytes;
	if (s->stack_bytes)
		s->stack_bytes = take(&at); /* of which were filled */
}

/* The ring is large enough for every test: nothing wraps and nothing is overwritten. */
bool event_next(struct event *e, struct sample *s)
{
	struct perf_event_mmap_page *page = (void *)e->map;
	const uint8_t *ring = e->map + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	while (page->data_tail < head) {
		const struct perf_event_header *h =
		    (const void *)(ring + page->data_tail % e->ring_bytes);

		page->data_tail += h->size;
		if (h->type == PERF_RECORD_SAMPLE) {
			parse(h, s);
			return true;
		}
	}
	return false;
}

uint64_t event_count(const struct event *e)
{
	uint64_t count = 0;

	return read(e->fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}
