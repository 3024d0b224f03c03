/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unwind/symbols/jitdump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/vec.h"
#include "unwind/symbols/jit_name.h"

#define MAGIC	    0x4a695444u /* "JiTD" */
#define MAX_RECORDS (4u << 20)
#define MAX_LOADS   (1u << 20)	 /* that can be found when their code is moved */
#define MAX_DEBUG   (1u << 20)	 /* bytes of a record of lines ... */
#define MAX_DEBUGS  (256u << 20) /* ... and of all that are read */
#define V8_SHIFT    64		 /* V8 adds the size of an ELF header to the addresses of lines */

enum kind { LOAD, MOVE, DEBUG_INFO, CLOSE };

struct header {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t timestamp, flags;
};

struct record {
	uint32_t kind, size;
	uint64_t timestamp;
};

struct load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
	/* the name, and the code */
};

struct move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};

struct debug {
	uint64_t address, n;
	/* n times: a struct debug_line and the source */
};

struct debug_line {
	uint64_t address;
	uint32_t line, column;
};

/* Where the records of a piece of code are. */
struct place {
	uint64_t index, load, debug; /* debug 0: no lines */
};

struct dump {
	int fd;
	uint64_t since;
	struct jit_names *names;
	struct jit_read *r;
	VEC(struct place) places;      /* by index */
	uint64_t debug, debug_address; /* the last record of lines, and its code */
	char *text;		       /* its content */
	uint64_t debug_bytes;	       /* of all records of lines that were read */
	VEC(struct jit_line) lines;
};

static bool get(const struct dump *d, uint64_t offset, void *out, size_t n)
{
	return pread(d->fd, out, n, (off_t)offset) == (ssize_t)n;
}

/* Reads the next line at @text + @at.  Return: what follows it, or 0 if it is not valid. */
static size_t read_line(const char *text, size_t at, size_t n, const char *before,
			struct jit_line *line)
{
	struct debug_line entry;
	const char *source, *end;

	if (n - at < sizeof(entry))
		return 0;
	memcpy(&entry, text + at, sizeof(entry));
	source = text + at + sizeof(entry);
	end = memchr(source, 0, n - at - sizeof(entry));
	if (!end)
		return 0;
	/* "\xff": the same source as of the line before. */
	*line = (struct jit_line){.address = entry.address,
				  .source = strcmp(source, "\xff") != 0 ? source : before,
				  .line = entry.line,
				  .column = entry.column};
	return line->source ? (size_t)(end - text) + 1 : 0;
}

/* Reads the lines of code that @move bytes were added to the address of.  All of them must be valid:
 * V8 11 writes random bytes as sources.  Return: whether they are. */
static bool read_lines(struct dump *d, uint64_t at, const struct load *code, uint64_t move)
{
	struct record record;
	struct debug debug;
	const char *before = NULL;
	size_t n, offset = 0;

	d->lines.n = 0;
	if (!get(d, at, &record, sizeof(record)) || record.size < sizeof(record) + sizeof(debug) ||
	    record.size > MAX_DEBUG || !get(d, at + sizeof(record), &debug, sizeof(debug)))
		return false;
	n = record.size - sizeof(record) - sizeof(debug);
	d->debug_bytes += n;
	if (d->debug_bytes > MAX_DEBUGS || !get(d, at + sizeof(record) + sizeof(debug), d->text, n))
		return false;
	for (uint64_t i = 0; i < debug.n; i++) {
		struct jit_line line;

		offset = read_line(d->text, offset, n, before, &line);
		if (!offset || line.address - code->address > code->size + V8_SHIFT)
			return false;
		before = line.source;
		line.address += move;
		if (vec_push(&d->lines, line))
			return false;
	}
	return n - offset < 8; /* padding */
}

/* Names the code of the record at @place, which is at @address now. */
static int name_code(struct dump *d, const struct place *place, uint64_t address, uint64_t size,
		     bool late)
{
	char name[JIT_MAX_NAME + 1];
	struct jit_code code = {.start = address, .size = size, .name = name, .late = late};
	struct record record;
	struct load load;
	size_t n, length;

	if (!get(d, place->load, &record, sizeof(record)) ||
	    !get(d, place->load + sizeof(record), &load, sizeof(load)))
		return 0;
	n = record.size - sizeof(record) - sizeof(load);
	n = n < JIT_MAX_NAME ? n : JIT_MAX_NAME;
	if (!get(d, place->load + sizeof(record) + sizeof(load), name, n))
		return 0;
	name[n] = 0;
	length = strlen(name);
	if (length == JIT_MAX_NAME)
		strcpy(name + n - 3, "...");
	if (!length || (length == n && n < JIT_MAX_NAME)) {
		d->r->invalid++;
		return 0;
	}
	if (place->debug &&
	    read_lines(d, place->debug, &load,
		       address - load.address - (jit_name_is_javascript(name) ? V8_SHIFT : 0))) {
		code.line = d->lines.at;
		code.lines = d->lines.n;
	}
	return jit_names_put(d->names, &code);
}

static int use_load(struct dump *d, uint64_t at, uint32_t size)
{
	struct place place = {.load = at};
	struct load load;

	if (size <= sizeof(struct record) + sizeof(load) ||
	    !get(d, at + sizeof(struct record), &load, sizeof(load)) ||
	    load.address + load.size < load.address) {
		d->r->invalid++;
		return 0;
	}
	d->r->codes++;
	place.index = load.index;
	place.debug = d->debug_address == load.address ? d->debug : 0;
	d->debug = 0;
	if (d->places.n < MAX_LOADS &&
	    (!d->places.n || d->places.at[d->places.n - 1].index < place.index) &&
	    vec_push(&d->places, place))
		return -ENOMEM;
	if (!jit_names_wants(d->names, load.address, load.size))
		return 0;
	return name_code(d, &place, load.address, load.size, at >= d->since);
}

static int by_index(const void *key, const void *place)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct place *)place)->index;

	return a < b ? -1 : a > b;
}

static int use_move(struct dump *d, uint64_t at, uint32_t size)
{
	const struct place *place;
	struct move move;

	if (size < sizeof(struct record) + sizeof(move) ||
	    !get(d, at + sizeof(struct record), &move, sizeof(move)) ||
	    move.to + move.size < move.to) {
		d->r->invalid++;
		return 0;
	}
	if (!jit_names_wants(d->names, move.to, move.size))
		return 0;
	place = vec_search(&d->places, &move.index, by_index);
	if (place)
		return name_code(d, place, move.to, move.size, at >= d->since);
	d->r->invalid++;
	return 0;
}

static void note_debug(struct dump *d, uint64_t at)
{
	struct debug debug;

	d->debug = 0;
	if (!get(d, at + sizeof(struct record), &debug, sizeof(debug)))
		return;
	d->debug = at;
	d->debug_address = debug.address;
}

static int read_records(struct dump *d, uint64_t at)
{
	struct record record;
	uint32_t n = 0;
	int ret = 0;

	while (!ret && get(d, at, &record, sizeof(record)) && record.kind != CLOSE) {
		if (record.size < sizeof(record)) {
			d->r->invalid++;
			break;
		}
		if (n++ == MAX_RECORDS)
			ret = -E2BIG;
		else if (record.kind == LOAD)
			ret = use_load(d, at, record.size);
		else if (record.kind == MOVE)
			ret = use_move(d, at, record.size);
		else if (record.kind == DEBUG_INFO)
			note_debug(d, at);
		at += record.size;
	}
	return ret;
}

int jitdump_read(int fd, uint64_t since, struct jit_names *names, struct jit_read *r)
{
	struct dump d = {.fd = fd, .since = since, .names = names, .r = r};
	struct header header;
	int ret;

	*r = (struct jit_read){0};
	if (!get(&d, 0, &header, sizeof(header)) || header.magic != MAGIC ||
	    header.size < sizeof(header))
		return -EPROTO;
	d.text = malloc(MAX_DEBUG);
	ret = d.text ? read_records(&d, header.size) : -ENOMEM;
	r->partial = ret != 0;
	if (r->partial)
		jit_names_leave_out(names);
	vec_free(&d.places);
	vec_free(&d.lines);
	free(d.text);
	return ret == -E2BIG ? 0 : ret;
}
