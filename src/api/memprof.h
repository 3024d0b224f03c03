/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libmemprof: record the heap of a running process, find its leaks, and read recordings.
 *
 * The memprof program is made of the same functions; doc/library.md has examples.
 *
 * Conventions:
 *
 * - A function that can fail returns MEMPROF_OK (0) or another enum memprof_code, and then fills the
 *   struct memprof_error, which can be NULL.  The codes are the exit statuses of the program
 *   (doc/exit-status.md).
 *
 * - A structure that can grow begins with its size, which the caller sets, and 0 is the default of everything else:
 *   struct memprof_attach_options o = {.size = sizeof(o)}.  A library that is newer than the
 *   caller leaves what the caller does not know at its default; one that is older refuses a structure that
 *   has more than it knows, if the rest is not zero.
 *
 * - Strings are UTF-8 as far as the system's are: names of files and functions are bytes.  What the library
 *   returns belongs to the object it was read from, unless a function says otherwise.
 *
 * - Threads: different objects can be used by different threads at the same time.  One object: what each
 *   function says; where nothing is said, by one thread at a time.
 *
 * - The library prints nothing, does not end the program, and changes neither its environment nor its limits.
 *   Its threads block all signals.  While it stops a process, it handles one real-time signal: the last one whose
 *   action is the default, which it then restores.  It forks only where a function says so.  A child that the
 *   program forks must not use the objects, and a thread must not be cancelled in a function.
 *
 * - It opens the files of the process's program and libraries, and a few more: the limit of open files
 *   (RLIMIT_NOFILE) must allow that.
 *
 * - elfutils, which the library is linked with, asks the servers in DEBUGINFOD_URLS, if it is set, for debug files.
 */
#ifndef MEMPROF_H
#define MEMPROF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The version of the interface.  The first number changes when callers must be compiled again, which the
 * library's name also says (libmemprof.so.1). */
#define MEMPROF_API_MAJOR 1
#define MEMPROF_API_MINOR 0

/* Return: the version of the library, as memprof --version prints it: "0.2". */
const char *memprof_version(void);

enum memprof_code {
	MEMPROF_OK = 0,
	MEMPROF_FAILURE = 1,	   /* anything without a code of its own, out of memory */
	MEMPROF_USAGE = 2,	   /* a wrong argument */
	MEMPROF_NO_PROCESS = 3,	   /* no such process, or it has ended */
	MEMPROF_PERMISSION = 4,	   /* ptrace, or reading a recording, is not permitted */
	MEMPROF_NOT_USER = 5,	   /* a kernel thread or a zombie */
	MEMPROF_TRACED = 6,	   /* another tracer is attached to the process */
	MEMPROF_ATTACHED = 7,	   /* the process is being recorded already */
	MEMPROF_ARCH = 8,	   /* the process has another architecture */
	MEMPROF_NO_ALLOCATOR = 9,  /* none of the known allocators was found */
	MEMPROF_NO_ROOM = 10,	   /* no free address space near the text, or no free descriptors */
	MEMPROF_SECCOMP = 11,	   /* a seccomp filter forbids a system call that is needed */
	MEMPROF_UNPATCHABLE = 12,  /* a prologue cannot be relocated safely */
	MEMPROF_RECORDING = 13,	   /* the recording is not readable */
	MEMPROF_OUTPUT = 14,	   /* the recording cannot be written, or its receiver is away */
	MEMPROF_NOT_RESTORED = 15, /* pages had to stay in the process: memprof_detach() again */
	MEMPROF_NO_SESSION = 16,   /* the process is not recorded */
	MEMPROF_TIMEOUT = 17,	   /* the process did not stop in time and was not changed */
	MEMPROF_KERNEL = 18,	   /* the kernel lacks what MEMPROF_VIA_KERNEL needs */
	MEMPROF_ENDED = 32,	   /* the recording has ended; not an exit status */
};

struct memprof_error {
	int code;	/* enum memprof_code */
	int system;	/* the errno value behind it; 0: none */
	char text[400]; /* one line, printable */
};

/* ------------------------------------------------------------- recording a process -- */

/* A recording that is being made. */
typedef struct memprof_session memprof_session;

/* How to record; options of memprof attach with the same names (memprof-attach(1)). */
enum memprof_flags {
	MEMPROF_HISTORY = 1 << 0,     /* keep each event: do not count short-lived blocks only */
	MEMPROF_LOSSLESS = 1 << 1,    /* the process waits rather than that an event is lost */
	MEMPROF_NO_THINNING = 1 << 2, /* lose events that are too many, do not estimate them */
	MEMPROF_LIVE_ONLY = 1 << 3,   /* only the live heap, written by memprof_flush() */
	MEMPROF_FREE_STACKS = 1 << 4, /* stacks of frees, too */
	MEMPROF_EMBED = 1 << 5, /* the binaries of the executed code become part of the recording */
	MEMPROF_PAUSED = 1 << 6,      /* begin paused */
	MEMPROF_VIA_KERNEL = 1 << 7,  /* kernel probes instead of an agent in the process */
	MEMPROF_PAGE_FAULTS = 1 << 8, /* page faults instead of allocations */
};

struct memprof_attach_options {
	size_t size;		  /* of this structure */
	const char *output;	  /* a pattern, as of --output; NULL: memprof-PID.memprof */
	uint64_t flags;		  /* enum memprof_flags */
	uint64_t for_ms;	  /* how long to record; 0: until memprof_stop() */
	uint64_t sample_interval; /* mean bytes a sample; 0: every allocation */
	uint32_t overhead_ppm;	  /* budget in millionths of the process's CPU time; 0: none */
	uint32_t depth;		  /* innermost frames that are kept; 0: all */
	uint64_t cull_ms;	  /* blocks that live shorter are only counted; 0: the default */
	uint64_t ring_bytes, queue_bytes; /* 0: the defaults */
	uint64_t rotate_bytes;		  /* of a piece, after which the next begins; 0: one file */
	uint32_t keep;			  /* finished pieces that are not deleted; 0: all */
	uint32_t jobs;			  /* threads that process the events; 0: the default */
	const char *to;			  /* HOST[:PORT] of a memprof gather, instead of a file */
	const char *token_file;		  /* for @to */
	uint64_t send_buffer_bytes;	  /* that wait for the receiver at most; 0: the default */
	uint64_t
	    deliver_ms; /* after the end: with nothing delivered for so long, the rest is lost; 0: the default */
	/* Called with what memprof attach would print on stderr: one line without a newline.  By the
	 * session's own thread.  NULL: not called. */
	void (*message)(void *ctx, const char *line);
	/* Called by the session's thread when the recording has begun, once a second, and when it has
	 * ended.  Of the functions of a session it may call memprof_look() and memprof_path(). */
	void (*progress)(void *ctx, memprof_session *s);
	void *ctx; /* passed to the functions */
};

/**
 * memprof_attach() - record a process
 * @pid: not the calling process
 * @o: NULL: all defaults; need not outlive the call
 * @s: set to the session, to be freed by memprof_free()
 *
 * Returns when the recording has begun.  A thread of the library makes the recording.  With @o->to it first waits until
 * the receiver answers, for 10 s at most; the process is not touched before.  On ARM it forks a child that ends at once,
 * to learn whether programs can read the time counter.
 */
int memprof_attach(pid_t pid, const struct memprof_attach_options *o, memprof_session **s,
		   struct memprof_error *err);

enum memprof_state {
	MEMPROF_IS_RECORDING = 1,
	MEMPROF_IS_PAUSED,
	MEMPROF_IS_COMPLETE, /* the recording has ended, and is a complete file */
	MEMPROF_HAS_FAILED,  /* it has ended, and is not; memprof_wait() says why */
};

/* Sums since the beginning. */
struct memprof_progress {
	size_t size; /* of this structure */
	int state;   /* enum memprof_state */
	uint64_t duration_ns, file_bytes;
	uint64_t events, allocations, frees, allocated_bytes;
	uint64_t live_blocks, live_bytes, peak_live_bytes;
	uint64_t lost;	  /* events; 0: nothing */
	uint64_t thinned; /* allocations that others represent: the sums are estimates */
	uint32_t cost_ppm,
	    stalled; /* with a budget: see attach --overhead; 1: the file cannot be written */
};
/* Fills @p.  Any thread, any time. */
void memprof_look(memprof_session *s, struct memprof_progress *p);
/* Return: the absolute path of the recording, of its first piece with rotation; with memprof_attach_options.to:
 * HOST[:PORT]/NAME.  Any thread. */
const char *memprof_path(const memprof_session *s);

/* A position in a recording: its first @file_bytes have exactly the events up to @time_ns. */
struct memprof_position {
	size_t size; /* of this structure */
	uint64_t time_ns, events, file_bytes;
};

/*
 * Each returns when everything that the process did before the call is in the file (with
 * memprof_attach_options.to: has arrived at its receiver).  @p: filled unless NULL.  Any thread, and several at
 * once.  MEMPROF_ENDED: the recording ended meanwhile, and has everything if it is complete.
 */
int memprof_flush(memprof_session *s, struct memprof_position *p, struct memprof_error *err);
/* Puts a mark into the recording.  @name: one line of at most 400 bytes. */
int memprof_mark(memprof_session *s, const char *name, struct memprof_position *p,
		 struct memprof_error *err);
/* New blocks are not recorded until memprof_resume(); the frees of earlier ones are. */
int memprof_pause(memprof_session *s, struct memprof_position *p, struct memprof_error *err);
int memprof_resume(memprof_session *s, struct memprof_position *p, struct memprof_error *err);

/* Return: a descriptor, which belongs to @s, that poll(2) finds readable when the recording has ended. */
int memprof_fd(const memprof_session *s);
/**
 * memprof_wait() - wait until the recording has ended: the process ended or executed another program, or
 * memprof_stop() or memprof detach ended the recording
 * @timeout_ms: < 0: any time
 * Return: MEMPROF_OK: it is complete; MEMPROF_TIMEOUT: it has not ended; or why it failed.  Any thread.
 */
int memprof_wait(memprof_session *s, int timeout_ms, struct memprof_error *err);
/* Ends the recording and restores the process.  memprof_flush() and the like in other threads return, at the latest
 * when this does.  Return: as memprof_wait().  Any thread. */
int memprof_stop(memprof_session *s, struct memprof_error *err);
/* Calls memprof_stop() if the recording has not ended, and frees @s, which no thread may use any more.  @s can be
 * NULL. */
void memprof_free(memprof_session *s);

/* ------------------------------------------------------------- reading a recording -- */

/* Which allocations are counted. */
typedef struct memprof_filter memprof_filter;
/* Return: a filter that all allocations pass, to be freed by memprof_filter_free(); NULL when out of memory. */
memprof_filter *memprof_filter_new(void);
/* Adds a condition; all must hold.  @name, @value: as of memprof report's options, "only_leaked" or "only-leaked"
 * (doc/filters.md). */
int memprof_filter_set(memprof_filter *f, const char *name, const char *value,
		       struct memprof_error *err);
void memprof_filter_free(memprof_filter *f);

/* A recording that was read. */
typedef struct memprof_recording memprof_recording;

/**
 * memprof_open() - read a recording, which can still grow
 * @filter: NULL: all allocations; must exist until memprof_close()
 * @r: set to the recording, to be closed by memprof_close()
 */
int memprof_open(const char *path, const memprof_filter *filter, memprof_recording **r,
		 struct memprof_error *err);
void memprof_close(memprof_recording *r); /* @r can be NULL */

/* The sums of a group of allocations.  A realloc() that succeeds frees one block and allocates another. */
struct memprof_sums {
	uint64_t allocations, allocated_bytes, frees;
	uint64_t live_blocks,
	    live_bytes; /* at the end: allocated during the recording, and not freed */
	uint64_t peak_blocks, peak_bytes; /* when the whole heap was at its peak */
	uint64_t temporary;		  /* freed before the same thread allocated again */
	uint64_t min_size, max_size;	  /* requested bytes of one allocation */
	uint64_t first_ns, last_ns; /* of the first and the last allocation, since the beginning */
	/* Standard errors of estimates; 0: the sum is exact */
	double allocations_error, allocated_bytes_error, live_blocks_error, live_bytes_error;
	uint64_t uncertain_blocks; /* so many live blocks can be free: their frees could be lost */
};

struct memprof_about {
	size_t size; /* of this structure */
	const char *executable, *cmdline;
	pid_t pid;
	uint32_t stacks; /* ids of stacks are below this; 0 is none */
	uint64_t start_unix_ns, duration_ns;
	uint64_t sample_interval; /* mean bytes a sample; 0: every allocation */
	uint64_t peak_ns;	  /* when the heap was at its peak */
	const char *incomplete;	  /* why the recording is not complete; NULL: it is */
	struct memprof_sums sums;
};
void memprof_about(const memprof_recording *r, struct memprof_about *a);

/* A counter of what can be missing: the members of "losses" in memprof report --json (doc/json.md). */
struct memprof_counter {
	const char *name;
	uint64_t value;
};
/* Return: counter @i of a recording, from 0; its name is NULL after the last one. */
struct memprof_counter memprof_loss(const memprof_recording *r, uint32_t i);

/* By what groups are sorted. */
enum memprof_cost {
	MEMPROF_LIVE_BYTES,
	MEMPROF_ALLOCATED_BYTES,
	MEMPROF_ALLOCATIONS,
	MEMPROF_PEAK_BYTES,
	MEMPROF_TEMPORARY,
};

/* All allocations with one stack. */
struct memprof_group {
	size_t size; /* of this structure */
	uint32_t stack;
	struct memprof_sums sums;
};

/* The groups of a recording, the most costly first. */
typedef struct memprof_groups memprof_groups;
/* Begins with those whose @cost (enum memprof_cost) is not 0.  @g: set, to be freed by memprof_groups_free()
 * before @r is closed.  Several can exist at once. */
int memprof_groups_begin(const memprof_recording *r, int cost, memprof_groups **g,
			 struct memprof_error *err);
/* Return: 1 with @out filled, or 0: there are no more. */
int memprof_groups_next(memprof_groups *g, struct memprof_group *out);
void memprof_groups_free(memprof_groups *g);

struct memprof_frame {
	size_t size;	      /* of this structure */
	const char *function; /* never NULL */
	const char *source;   /* file; NULL: not known */
	const char *library;  /* name of the file that has the code; NULL: not known */
	uint64_t address;
	uint32_t line, inlined; /* line 0: not known; inlined 1: into the next frame */
};

/* The frames of a stack, the innermost first. */
typedef struct memprof_frames memprof_frames;
/* @stack: its id; 0 or unknown: no frames.  @f: set, to be freed by memprof_frames_free() before @r is closed. */
int memprof_frames_begin(memprof_recording *r, uint32_t stack, memprof_frames **f,
			 struct memprof_error *err);
int memprof_frames_next(memprof_frames *f,
			struct memprof_frame *out); /* as memprof_groups_next() */
void memprof_frames_free(memprof_frames *f);

/* ------------------------------------------------------------- leaks of a process -- */

/* How the memory is read; memprof-leaks(1) compares them. */
enum memprof_mode {
	MEMPROF_MODE_BEST, /* a copy, or pre-copy if the pause would be shorter by far */
	MEMPROF_MODE_COPY,
	MEMPROF_MODE_PRE_COPY,
	MEMPROF_MODE_IN_PLACE, /* the process is stopped meanwhile */
};

struct memprof_leaks_options {
	size_t size;	      /* of this structure */
	int mode;	      /* enum memprof_mode */
	uint32_t confirm;     /* looks that must all find a leak; 0: 1 */
	uint64_t interval_ms; /* between them; 0: 10 s */
	uint64_t
	    max_pause_ms; /* MEMPROF_TIMEOUT, and the process is left alone, if a longer pause is predicted; 0: any */
	const char
	    *recording; /* of the process, for stacks; NULL: the one that is being made, if any */
	uint32_t no_content; /* 1: no bytes of the process's memory are shown */
};

/* The blocks that no pointer of a process reaches. */
typedef struct memprof_leaks memprof_leaks;

/**
 * memprof_leaks_find() - find the leaks of a process
 * @pid: not the calling process
 * @o: NULL: all defaults
 * @l: set to the leaks, to be freed by memprof_leaks_free()
 *
 * The process is stopped for some milliseconds.  While the copy is read, the caller has a child process: it removes the
 * copy if the caller is killed.  The child is made by fork(), ends by itself and is waited for; the caller receives a
 * SIGCHLD, and should not wait for children that it does not know.
 */
int memprof_leaks_find(pid_t pid, const struct memprof_leaks_options *o, memprof_leaks **l,
		       struct memprof_error *err);
void memprof_leaks_free(memprof_leaks *l); /* @l can be NULL */

struct memprof_leaks_about {
	size_t size; /* of this structure */
	uint64_t live_blocks, live_bytes;
	uint64_t leaked_blocks, leaked_bytes; /* with those that only leaked blocks point to */
	uint64_t pause_ns;		      /* the longest time that the process was stopped */
	uint32_t exact;			      /* 0: a heap could not be walked exactly */
	const char *no_stacks;		      /* why no stacks are known; NULL: they are */
};
void memprof_leaks_about(const memprof_leaks *l, struct memprof_leaks_about *a);

/* Leaks of the same type, size and, if known, stack. */
struct memprof_leak {
	size_t size;	     /* of this structure */
	const char *type;    /* "app::Node", or the shape of the content: "text", "pointers", ... */
	const char *preview; /* the beginning of a text; NULL: none */
	uint64_t block_size; /* usable bytes of each */
	uint64_t count, bytes;
	uint64_t indirect_count, indirect_bytes; /* blocks that only these point to */
	uint64_t example;			 /* address of one */
	uint32_t stack;				 /* 0: not known */
	uint32_t thread;			 /* that allocated the oldest; 0: not known */
	uint64_t age_ns;			 /* of the oldest; 0: not known */
};
/* Fills @out with the next leaks, those with the most bytes first.  Return: 1, or 0: there are no more, and the next
 * call begins again. */
int memprof_leaks_next(memprof_leaks *l, struct memprof_leak *out);
/* As memprof_frames_begin(), before @l is freed. */
int memprof_leaks_frames(memprof_leaks *l, uint32_t stack, memprof_frames **f,
			 struct memprof_error *err);

/* ------------------------------------------------------------- the heap of a process -- */

struct memprof_heap_options {
	size_t size;	       /* of this structure */
	int mode;	       /* enum memprof_mode */
	uint64_t max_pause_ms; /* as of struct memprof_leaks_options */
};

/* What is live in the heap of a process, by type, and of what its resident memory consists. */
typedef struct memprof_heap memprof_heap;

/**
 * memprof_heap_take() - examine the heap of a process
 * @h: set to the report, to be freed by memprof_heap_free()
 * Everything else as of memprof_leaks_find().
 */
int memprof_heap_take(pid_t pid, const struct memprof_heap_options *o, memprof_heap **h,
		      struct memprof_error *err);
void memprof_heap_free(memprof_heap *h); /* @h can be NULL */

struct memprof_heap_about {
	size_t size; /* of this structure */
	uint64_t live_blocks, live_bytes;
	uint64_t pause_ns; /* how long the process was stopped */
	uint32_t exact;	   /* 0: a heap could not be walked exactly */
	/* Resident bytes, which add up to .total.  The first four are within heaps. */
	uint64_t live;	   /* in live blocks */
	uint64_t cached;   /* free blocks in the caches of threads */
	uint64_t metadata; /* headers and tables of allocators */
	uint64_t free;	   /* free, but kept by allocators, including fragmentation */
	uint64_t stacks;
	uint64_t modules_data, modules_text; /* of the program and its libraries */
	uint64_t files;			     /* other mapped files */
	uint64_t shared;		     /* shared memory and devices */
	uint64_t anonymous;		     /* other mappings of the program */
	uint64_t total;
	uint64_t rss; /* as the kernel reports it */
	uint64_t swap;
};
void memprof_heap_about(const memprof_heap *h, struct memprof_heap_about *a);

/* All live blocks of a type; or of a size, if their type is not known. */
struct memprof_heap_type {
	size_t size;	     /* of this structure */
	const char *type;    /* "app::Node"; NULL: not known */
	const char *library; /* name of the file that defines it; NULL: not known */
	uint64_t block_size; /* usable bytes of each; 0: they differ */
	uint64_t count, bytes;
};
/* Fills @out with the next type, those with the most bytes first.  Return: as memprof_leaks_next(). */
int memprof_heap_next(memprof_heap *h, struct memprof_heap_type *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
