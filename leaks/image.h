/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The memory of one process at one moment: of a stopped process, of its copy, or of a core file.
 * What walks heaps and follows pointers reads only through here.
 */
#ifndef LEAKS_IMAGE_H
#define LEAKS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "arch/arch.h"
#include "attach/target.h"
#include "lib/err.h"
#include "lib/vec.h"

struct image_map {
	uint64_t start, end, offset, ino;
	uint32_t dev_major, dev_minor;
	bool read, write, exec, shared;
	bool live;   /* not part of the copy (MADV_DONTFORK): read from the running process */
	bool frozen; /* image_freeze(): what was touched of it lies in memprof */
	char *path;  /* as in /proc/PID/maps: "" anonymous, "[heap]", a file; " (deleted)" kept */
};

/* Bytes of stack that the frames of an allocator's own functions take at most. */
#define IMAGE_ALLOCATOR_FRAMES 1024u

struct image_thread {
	pid_t tid;
	bool has_regs; /* false: it waits in the kernel for its vfork child, or runs */
	bool had_regs; /* regs are of a moment before: what it held, not where it is */
	struct arch_regs regs;
	uint64_t tls; /* thread pointer, 0: not known */
};

struct image;
struct image_ops {
	uint64_t (*present)(struct image *img, const struct image_map *map, uint64_t *addr);
	size_t (*fetch)(struct image *img, uint64_t addr, void *to, size_t len);
	int (*open_file)(struct image *img, const struct image_map *map);
	void (*close)(struct image *img);
};

struct image {
	const struct arch *arch;
	pid_t pid;		    /* the process that it shows, not the copy */
	VEC(struct image_map) maps; /* by address */
	VEC(struct image_thread) threads;
	const struct image_ops *ops;
	int fd;	       /* of the memory */
	int live_fd;   /* of the process itself, for what its copy does not have; -1: none */
	void *backend; /* the backend's own */
	struct frozen *frozen; /* leaks/frozen.h; NULL: none */
	uint64_t bytes_read;   /* so far */
	uint32_t page_size;    /* of its pages, bytes */
	bool torn;	       /* threads ran while it was made: not of one moment */
};

/* Empty, so that image_close() may be called at any time. */
void image_init(struct image *img, const struct arch *arch, pid_t pid);
/* Registers and thread pointers of the threads of @t, which are stopped; in place of what @img has
 * of them.  Return: 0 or -errno. */
int image_take_threads(struct image *img, struct target *t);
/**
 * image_open_process() - maps and memory of a process that does not run
 * @memory: whose: the process itself (stopped), or its copy
 * Reads go through /proc/@memory/mem: process_vm_readv() would pin, and so un-share, every page.
 * Return: 0 or -errno with @err filled.
 */
int image_open_process(struct image *img, pid_t memory, struct mp_err *err);
/**
 * image_open_core() - memory, registers and maps of a core file
 * @img: after image_init() with any architecture: the core's is taken
 * @exe: the program that dumped it; must stay; checked by build-id
 * Return: 0 or -errno with @err filled (MP_EXIT_USAGE: not a core, cut off, damaged, another
 * program's; MP_EXIT_ARCH).
 */
int image_open_core(struct image *img, const char *path, const char *exe, struct mp_err *err);
/**
 * image_add_live() - adds writable memory of the process that its copy did not get (MADV_DONTFORK)
 * @before: the process's maps before the copy was made
 * What it maps and unmaps while it runs is none of that.
 * Return: 0 or -errno.
 */
int image_add_live(struct image *img, const struct maps *before);
void image_close(struct image *img);

/* Return: bytes read, fewer than @len at the first byte that cannot be. */
size_t image_read(struct image *img, uint64_t addr, void *to, size_t len);
/* All or nothing. */
bool image_read_all(struct image *img, uint64_t addr, void *to, size_t len);
/* A word of the architecture's pointer size. */
bool image_word(struct image *img, uint64_t addr, uint64_t *value);
/* The next run of pages that have ever been touched, at or behind *@addr in @map.
 * Return: its end, with *@addr its start; 0: there is none. */
uint64_t image_present(struct image *img, const struct image_map *map, uint64_t *addr);
/* Return: the map that contains @addr, or NULL. */
const struct image_map *image_map_at(const struct image *img, uint64_t addr);
/* The file of @map as the process saw it.  Return: descriptor or -errno. */
int image_open_file(struct image *img, const struct image_map *map);
/* Last part of a map's path: "libc.so.6". */
const char *image_map_name(const struct image_map *map);

/*
 * A window over an image for many small reads that go upwards: one large read serves them.
 * Zero-initialize; image_view_free() at the end.
 */
#define IMAGE_VIEW_SIZE (1u << 18)
struct image_view {
	uint8_t *buf;
	uint64_t start;
	size_t n;
};
/* Return: @len (at most IMAGE_VIEW_SIZE) bytes at @addr, valid until the next call; NULL if any of
 * them cannot be read. */
const void *image_view(struct image *img, struct image_view *v, uint64_t addr, size_t len);
void image_view_free(struct image_view *v);

#endif
