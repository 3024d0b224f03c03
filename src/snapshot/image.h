/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The memory of a process at one moment, read from the stopped process, its copy, or a core file.
 * Heap walkers and pointer scans read only through this interface.
 */
#ifndef SNAPSHOT_IMAGE_H
#define SNAPSHOT_IMAGE_H

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
	bool live;   /* not in the copy (MADV_DONTFORK): read from the running process */
	bool frozen; /* image_freeze(): its touched pages are stored in memprof */
	char *path;  /* as in /proc/PID/maps: "" anonymous, "[heap]", a file; " (deleted)" kept */
};

/* Most bytes of stack that the frames of an allocator's functions take. */
#define IMAGE_ALLOCATOR_FRAMES 1024u

struct image_thread {
	pid_t tid;
	bool has_regs; /* false: it waits in the kernel for its vfork child, or is running */
	bool had_regs; /* regs are from a moment before: valid as values, but not as its position */
	struct arch_regs regs;
	uint64_t tls; /* thread pointer; 0: not known */
};

struct image;
struct image_ops {
	uint64_t (*present)(struct image *img, const struct image_map *map, uint64_t *addr);
	size_t (*fetch)(struct image *img, uint64_t addr, void *to, size_t len);
	int (*open_file)(struct image *img, const struct image_map *map);
	void (*close)(struct image *img);
	bool parallel; /* several threads can fetch at the same time */
};

struct image {
	const struct arch *arch;
	pid_t pid;		    /* the process that the image shows, not its copy */
	VEC(struct image_map) maps; /* by address */
	VEC(struct image_thread) threads;
	const struct image_ops *ops;
	int fd;	     /* open file of the memory */
	int live_fd; /* open file of the process's own memory, for what its copy lacks; -1: none */
	void *backend;	       /* private to the backend */
	struct frozen *frozen; /* snapshot/frozen.h; NULL: none */
	uint64_t bytes_read;   /* so far */
	uint32_t page_size;    /* bytes */
	bool held;	       /* the process is stopped until the image is closed */
	bool torn; /* threads were running while it was made, so it is not of a single moment */
};

/* Initializes an empty image, for which image_close() may be called. */
void image_init(struct image *img, const struct arch *arch, pid_t pid);
/* Replaces the threads of @img by those of @t, which are stopped: registers and thread pointers.
 * Return: 0 or -errno. */
int image_take_threads(struct image *img, struct target *t);
/* Return: thread @tid among the first @known threads, or NULL.  The search begins at @next, which
 * is set to the index after the result: most lists of threads are in the same order. */
struct image_thread *image_thread(struct image *img, size_t known, pid_t tid, size_t *next);
/**
 * image_open_process() - open maps and memory of a process that does not run
 * @memory: pid of the stopped process itself, or of its copy
 * Reads go through /proc/@memory/mem: process_vm_readv() would pin pages and so un-share them.
 * Return: 0 or -errno with @err filled.
 */
int image_open_process(struct image *img, pid_t memory, struct mp_err *err);
/**
 * image_open_core() - open memory, registers and maps of a core file
 * @img: after image_init() with any architecture, which is replaced by the core's
 * @exe: the program that dumped it; the string must stay; checked by build id
 * Return: 0 or -errno with @err filled (MP_EXIT_USAGE: not a core, truncated, damaged, or of
 * another program; MP_EXIT_ARCH).
 */
int image_open_core(struct image *img, const char *path, const char *exe, struct mp_err *err);
/**
 * image_add_live() - add writable memory of the process that its copy lacks (MADV_DONTFORK)
 * @before: the process's maps before the copy was made
 * Mappings that the process made or removed since are left out.
 * Return: 0 or -errno.
 */
int image_add_live(struct image *img, const struct maps *before);
void image_close(struct image *img);

/* Return: bytes read; fewer than @len if one cannot be read. */
size_t image_read(struct image *img, uint64_t addr, void *to, size_t len);
/* Reads all @len bytes.  Return: false if one cannot be read. */
bool image_read_all(struct image *img, uint64_t addr, void *to, size_t len);
/* Reads a word of the architecture's pointer size.  Return: false if it cannot be read. */
bool image_word(struct image *img, uint64_t addr, uint64_t *value);
/* Finds the next run of pages that were ever touched, at or after *@addr in @map.  Return: its end,
 * with *@addr its start; 0: there is none. */
uint64_t image_present(struct image *img, const struct image_map *map, uint64_t *addr);
/* Return: the map that contains @addr, or NULL. */
const struct image_map *image_map_at(const struct image *img, uint64_t addr);
/* Opens the file of @map as the process saw it.  Return: descriptor or -errno. */
int image_open_file(struct image *img, const struct image_map *map);
/* For image_process.c and image_core.c: pread(2) until @len bytes, the end of the file or an error.
 * Return: the bytes read. */
size_t image_pread(int fd, void *to, size_t len, uint64_t offset);
/* The last component of a map's path: "libc.so.6". */
const char *image_map_name(const struct image_map *map);

/*
 * A window over an image that serves many small reads at ascending addresses by one large read.
 * Zero-initialize; image_view_free() at the end.
 */
#define IMAGE_VIEW_SIZE (1u << 18)
struct image_view {
	uint8_t *buf;
	uint64_t start;
	size_t n;
};
/* Return: @len (at most IMAGE_VIEW_SIZE) bytes from @addr, valid until the next call; NULL if one
 * cannot be read. */
const void *image_view(struct image *img, struct image_view *v, uint64_t addr, size_t len);
void image_view_free(struct image_view *v);

#endif
