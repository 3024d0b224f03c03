/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The recording file: append-only chunks, each with header, length, checksum and a zstd payload
 * (formats/FORMAT.md is normative).  Byte order independent.  A file that was cut off anywhere can
 * be read up to its last complete chunk.
 */
#ifndef FORMATS_FILE_H
#define FORMATS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "formats/event.h"
#include "formats/lifetimes.h"
#include "lib/err.h"

/* The kind of events in a recording. */
enum mp_what { MP_ALLOCATIONS, MP_PAGE_FAULTS };

/* General information about a recording.  The strings are owned by the code that filled the
 * struct. */
struct mp_info {
	uint8_t id[16]; /* random; shown as 32 hex digits */
	uint32_t pid;
	uint16_t machine;	/* ELF e_machine */
	uint8_t mode;		/* 0 attached, 1 run */
	uint64_t start_unix_ns; /* wall clock at time_ns 0 */
	uint64_t process_start_unix_ns;
	uint64_t sample_interval; /* bytes; 0: every allocation is recorded */
	/* Budget in millionths of the CPU time, within which allocations were recorded exactly or at
	 * changing intervals; 0: none */
	uint32_t overhead_ppm;
	uint8_t what;	    /* enum mp_what */
	uint8_t user_only;  /* page faults: those inside system calls are not included */
	uint32_t page_size; /* page faults: size of the smallest pages, bytes */
	uint32_t piece;	    /* number of this piece (--rotate); all have the same id */
	uint64_t piece_ns;  /* start of this piece, relative to that of the first */
	uint32_t processes; /* number of processes if several were merged; else 0 */
	/* Blocks that lived shorter can be in the file as sums only (struct mp_culled); 0: none is */
	uint64_t cull_ns;
	uint32_t keep;		/* number of finished pieces that are kept (--keep); 0: all */
	uint8_t live_only;	/* has only the blocks that were live at its end (--live-only) */
	const char *executable; /* path */
	const char *cmdline;	/* arguments joined by blanks, quoted where needed */
	const char *memprof_version;
	char called[64]; /* the executable's file name as the program was called by; "": its own */
};

struct mp_hook_info {
	const char *name;   /* malloc */
	const char *module; /* libc.so.6 */
	uint8_t kind;	    /* enum ss_hook_kind */
};

/* From this bit on, an address of code in a recording has the number of its module among those that the process had
 * at the same place; see FORMAT.md. */
#define MP_NUMBER_SHIFT 48

/* Return: the address in the process. */
static inline uint64_t mp_address_in_process(uint64_t address)
{
	return address & ((1ull << MP_NUMBER_SHIFT) - 1);
}

struct mp_module {
	uint64_t start, end, file_offset; /* executable mapping */
	uint64_t bias;			  /* address - ELF virtual address */
	uint64_t time_ns;		  /* when it appeared; 0: present at start */
	const char *path;
	uint8_t build_id[32];
	uint8_t build_id_len;
};

/* A part of a file that the recording contains; see formats/binaries.h. */
struct mp_binary {
	const char *path; /* as the module's */
	uint8_t build_id[32];
	uint8_t build_id_len;
	uint64_t size, offset; /* bytes of the file; offset of this part in it */
	const void *data;
	size_t n; /* at most MPF_BINARY_PIECE */
};
#define MPF_BINARY_PIECE (256u << 10)

/* One of several processes in a merged recording.  Addresses in its events have its number in the
 * bits from MP_PROCESS_SHIFT on. */
struct mp_process {
	uint32_t number, pid;
	uint64_t start_ns, end_ns; /* start and end of its recording, as event times */
	const char *executable, *cmdline;
};
#define MP_PROCESS_SHIFT 48
#define MP_MAX_PROCESSES 1024u

/* Memory use of the target as read from /proc about once a second, in bytes. */
struct mp_sample {
	uint64_t time_ns;
	/* Of the program alone; in older recordings it includes the session's. */
	uint64_t rss, anonymous, file, swap, address_space;
	/* Of what memprof mapped into the process. */
	uint64_t session_rss, session_anonymous, session_address_space;
};

/* Memory use of one mapping of the target, from /proc/PID/smaps, about every ten seconds, in
 * bytes.  Mappings without memory are left out. */
struct mp_map_usage {
	uint64_t time_ns; /* of the reading; the same for all its mappings */
	uint64_t start, end, rss, anonymous, swap;
	uint32_t prot; /* PROT_* */
	const char *path;
};

/* Counters of losses.  They are cumulative; the last item in the file is valid. */
struct mp_losses {
	uint64_t lost_alloc, lost_free, lost_realloc, lost_map, lost_other; /* events */
	uint64_t lost_bytes;   /* requested bytes of lost allocations */
	uint64_t lost_no_slot; /* events of threads without a slot */
	uint64_t stale;	       /* calls after the recorder's deadline */
	uint64_t queue_batches, queue_events, queue_bytes,
	    queue_peak_bytes; /* dropped by the queue */
	uint64_t stacks_full; /* stacks that did not fit in the agent's tables */
	uint64_t missed_new;
	uint64_t foreign_frees; /* frees of blocks older than the recording */
	uint64_t foreign_reallocs;
	/* Frees by the allocator's own module of blocks that were already freed (glibc when a
	 * thread ends).  They are not frees by the program. */
	uint64_t housekeeping_frees;
	uint64_t mismatches;	/* allocation of an address that was live */
	uint64_t sideband_lost; /* PERF_RECORD_LOST of the kernel's rings */
	/* Events that should have a stack; those with a complete one */
	uint64_t stacks_total, stacks_complete;
	uint64_t stacks_cached;
	uint64_t left_out_allocs, left_out_frees; /* not selected or while paused; not lost */
	/* The part of the sums above that can have ended blocks: frees and reallocs. */
	uint64_t stale_frees, no_slot_frees;
	/* queue_events by kind; queue_requested: bytes that the dropped allocations requested
	 * (queue_bytes are bytes of records). */
	uint64_t queue_alloc, queue_free, queue_realloc, queue_map, queue_other;
	uint64_t queue_requested;
	uint64_t queue_ceiling;
	uint64_t first_loss_ns, last_loss_ns; /* all losses are between these; 0, 0: none */
	/* Checking build: walks compared with complete ones, and found different */
	uint64_t stacks_checked, stacks_differ;
	/* Records of the agent that the recorders of this session have seen, and records that were
	 * lost when a recorder took over from another. */
	uint64_t seen_alloc, seen_free, seen_realloc, seen_map;
	uint64_t restart_alloc, restart_free, restart_realloc, restart_map;
	/* Allocations that were thinned out, and their requested bytes; not lost: others
	 * represent them. */
	uint64_t thinned, thinned_bytes;
};

/* struct mp_culled.flags, beside EV_F_NON_MAIN and EV_F_MMAPPED of the allocations. */
enum mp_culled_flags {
	MP_CULLED_TEMPORARY = 4,  /* the blocks were temporary (model/model.h) */
	MP_CULLED_RESIZED = 8,	  /* realloc() ended the blocks and continued them as others */
	MP_CULLED_CONTINUED = 16, /* realloc() made the blocks of others */
	MP_CULLED_FLAGS = 31,	  /* all flags */
};

/*
 * The sum of culled blocks, which have no events in the file because they lived only for a short
 * time.  It covers blocks that agree in all members up to @weight.
 */
struct mp_culled {
	uint64_t size; /* bytes requested for each block */
	uint32_t stack, tid, free_tid;
	uint16_t hook,
	    free_hook;	  /* the functions called; free_hook UINT16_MAX: not a call of its own */
	uint16_t process; /* number of the process, in a merged recording of several */
	uint8_t flags;
	uint8_t weight;			     /* each of the blocks represents 2^weight */
	uint64_t first_ns, last_ns;	     /* their earliest and latest allocation */
	uint64_t blocks;		     /* that were recorded */
	uint64_t usable;		     /* bytes of all these blocks */
	uint32_t lifetime[LIFETIME_CLASSES]; /* number of blocks in each class */
};

/* Return: the number of events that the sum replaces; that of its blocks' reallocs count for the blocks
 * that they ended. */
static inline uint64_t mp_culled_events(const struct mp_culled *c)
{
	return c->blocks * ((c->flags & MP_CULLED_CONTINUED ? 0u : 1u) +
			    (c->flags & MP_CULLED_RESIZED ? 2u : 1u));
}

/* Return: how many blocks, and how many requested bytes, the sum represents. */
static inline uint64_t mp_culled_count(const struct mp_culled *c)
{
	return c->blocks << c->weight;
}

static inline uint64_t mp_culled_bytes(const struct mp_culled *c)
{
	return (c->size * c->blocks) << c->weight;
}

/*
 * All allocations and frees in a section of time, which begins where the section before ends; the
 * first begins at time 0.  A culled recording has sections up to its end: its events alone do not
 * say how much was live.
 */
struct mp_section {
	uint64_t end_ns;
	uint64_t live_bytes, live_blocks; /* at its end */
	uint64_t peak_bytes, peak_blocks; /* highest value of each in it */
	uint64_t allocations, allocated_bytes, frees, freed_bytes;
};

/* What a stack had live in a culled recording: at most, with the time when that was first reached, and
 * when the live bytes of all stacks were at their maximum. */
struct mp_stack_peak {
	uint32_t stack;
	uint64_t most_bytes, most_ns;
	uint64_t peak_bytes, peak_blocks;
};

/* Sums of all events, as counted by the recorder. */
struct mp_totals {
	uint64_t events, allocations, allocated_bytes, frees;
	uint64_t live_bytes, live_blocks; /* estimates in a sampled recording */
};

/* What a stack or a thread allocated so far, in a view of a recording that continues (record/view.h).
 * Estimates in a sampled or thinned recording. */
struct mp_activity {
	uint32_t id; /* of the stack; or the thread */
	uint64_t allocations, allocated_bytes;
	uint64_t temporary;	  /* not known in a sampled recording: 0 */
	uint64_t temporary_bytes; /* of a stack */
	double live_variance;	  /* of the estimate of a stack's live bytes; a thread's is 0 */
};

/* Return: the number of all lost events. */
uint64_t mp_losses_events(const struct mp_losses *l);
/* Return: the lost events that can have ended a block, so the number of live blocks that can be
 * free in fact. */
uint64_t mp_losses_frees(const struct mp_losses *l);

/* Resets the counters that belong to a piece, not to the session. */
void mp_losses_begin_piece(struct mp_losses *l);
/* Extends @sum, the losses up to one piece, by those of the @next piece of the same recording,
 * whose time 0 is @next_ns later. */
void mp_losses_continue(struct mp_losses *sum, const struct mp_losses *next, uint64_t next_ns);
/* Adds the losses of another process, whose time 0 is @next_ns later. */
void mp_losses_add(struct mp_losses *sum, const struct mp_losses *next, uint64_t next_ns);

/* Result of the recording, written at the end (missing if the recorder was killed). */
struct mp_finish {
	uint64_t end_ns;
	uint64_t peak_live_bytes, peak_live_blocks, peak_time_ns;
	uint64_t attach_stop_ns, detach_stop_ns; /* time for which all threads were stopped */
	uint8_t reason;				 /* enum mp_end_reason */
	uint8_t restored;			 /* 1: the target was restored */
	uint8_t sideband; /* 1: module changes came from the side band; 0: from /proc/PID/maps */
};

enum mp_end_reason {
	MP_END_DETACHED = 1,
	MP_END_EXITED,
	MP_END_EXECED,
	MP_END_TIME,
	MP_END_ERROR,
	MP_END_KEPT,   /* the session continues, with another recorder */
	MP_END_PIECED, /* the recording continues in its next piece */
};

/* One frame of a symbolized address; inlined frames come first (innermost first). */
struct mp_symbol {
	const char *function;	  /* demangled; NULL: unknown */
	const char *raw_function; /* as in the symbol table, or as the program named its code */
	const char *source;	  /* path; NULL: unknown */
	uint32_t line, column;	  /* 0: unknown */
	bool is_inline;
};

/* ------------------------------------------------------------------------------- writing -- */

struct mpf_writer;

/**
 * mpf_create() - start a recording file, mode 0600
 * @path: must not be a directory; an existing regular file is replaced
 * @info: copied into the first chunk
 *
 * Return: 0, or a negative errno with @err filled (MP_EXIT_OUTPUT).
 */
int mpf_create(const char *path, const struct mp_info *info, struct mpf_writer **w,
	       struct mp_err *err);
/* As mpf_create(), in an empty file that is open for writing.  @fd: owned by @w, also if it fails;
 * @name: of the file, for messages. */
int mpf_create_in(int fd, const char *name, const struct mp_info *info, struct mpf_writer **w,
		  struct mp_err *err);
/* Makes a writer that drops all that is put.  Return: 0 or -ENOMEM. */
int mpf_create_nowhere(struct mpf_writer **w);
/* From now on a thread of @w's own encodes events and stacks and writes the chunks.  Its file is the same.  To
 * be called at most once.  Return: 0, or a negative errno: then the callers' threads do it, as before. */
int mpf_write_behind(struct mpf_writer *w);
/* Each appends one item to the current chunk; return 0 or a negative errno (write failed).  After
 * mpf_write_behind(), an error is not known at once, but at mpf_flush(). */
int mpf_put_hook(struct mpf_writer *w, const struct mp_hook_info *hook); /* ids in order, from 0 */
int mpf_put_module(struct mpf_writer *w, const struct mp_module *m);
int mpf_put_thread(struct mpf_writer *w, uint32_t tid, const char *name);
/* @pc: innermost first, SS_PC_EXACT marks kept; @id in increasing order from 1. */
int mpf_put_stack(struct mpf_writer *w, uint32_t id, uint32_t flags, const uint64_t *pc,
		  uint32_t n);
int mpf_put_event(struct mpf_writer *w, const struct mp_event *ev);
/* Prefetches what mpf_put_event() will need for an event with @addr; the second one some time later.
 * Do nothing after mpf_write_behind(): another thread will need it. */
void mpf_prefetch(const struct mpf_writer *w, uint64_t addr);
void mpf_prefetch_block(const struct mpf_writer *w, uint64_t addr);
int mpf_put_sample(struct mpf_writer *w, const struct mp_sample *s);
int mpf_put_map_usage(struct mpf_writer *w, const struct mp_map_usage *u);
int mpf_put_losses(struct mpf_writer *w, const struct mp_losses *l);
int mpf_put_symbols(struct mpf_writer *w, uint64_t pc, const struct mp_symbol *sym, uint32_t n);
int mpf_put_finish(struct mpf_writer *w, const struct mp_finish *f);
int mpf_put_culled(struct mpf_writer *w, const struct mp_culled *c);
int mpf_put_section(struct mpf_writer *w, const struct mp_section *s);
int mpf_put_stack_peak(struct mpf_writer *w, const struct mp_stack_peak *p);
/* A named moment (memprof mark). */
int mpf_put_mark(struct mpf_writer *w, uint64_t time_ns, const char *name);
int mpf_put_process(struct mpf_writer *w, const struct mp_process *p);
/* Parts of a file in order; to be called after all items. */
int mpf_put_binary(struct mpf_writer *w, const struct mp_binary *b);
/* Sets the base of a piece: from now on @base_ns is subtracted from all times that are put. */
void mpf_set_base(struct mpf_writer *w, uint64_t base_ns);
/*
 * The index answers queries without reading all events.  Items put between mpf_begin_index() and
 * mpf_end_index() (modules, stacks, totals, live) are skipped by mpf_next() unless
 * mpf_seek_index() was called.  Symbols, losses and finish must follow the index.
 */
int mpf_begin_index(struct mpf_writer *w);
int mpf_put_totals(struct mpf_writer *w, const struct mp_totals *t);
/* The live memory that was allocated with stack @id (0: none). */
int mpf_put_live(struct mpf_writer *w, uint32_t id, uint64_t bytes, uint64_t blocks);
/* Only in a view.  @thread: of a thread, not of a stack. */
int mpf_put_activity(struct mpf_writer *w, const struct mp_activity *a, bool thread);
int mpf_end_index(struct mpf_writer *w);
/* Ends the current chunk and writes it, so that it is kept if the recorder dies.  Returns when all is in
 * the file. */
int mpf_flush(struct mpf_writer *w);
/* Bytes written so far; after mpf_write_behind() those of the latest events can be missing until
 * mpf_flush(). */
uint64_t mpf_bytes(const struct mpf_writer *w);
/* Return: the descriptor of the file, which stays @w's. */
int mpf_descriptor(const struct mpf_writer *w);
/* Flushes, closes and frees @w.  Return: 0 or the first error of the file's life. */
int mpf_close(struct mpf_writer *w);
/* As mpf_close(), for a recording that is incomplete: readers will report that it was cut off. */
int mpf_close_open_ended(struct mpf_writer *w);

/* ------------------------------------------------------------------------------- reading -- */

enum mpf_item_kind {
	MPF_END = 0,
	MPF_HOOK,
	MPF_MODULE,
	MPF_THREAD,
	MPF_STACK,
	MPF_EVENT,
	MPF_SAMPLE,
	MPF_LOSSES,
	MPF_SYMBOLS,
	MPF_FINISH,
	MPF_CULLED,
	MPF_MARK,
	MPF_MAP_USAGE,
	MPF_TOTALS,
	MPF_LIVE,
	MPF_PROCESS,
	MPF_SECTION,
	MPF_STACK_PEAK,
	MPF_ACTIVITY,
	MPF_THREAD_ACTIVITY,
};
#define MPF_KINDS (MPF_THREAD_ACTIVITY + 1)

/* Pointers are valid until the next mpf_next(). */
struct mpf_item {
	enum mpf_item_kind kind;
	union {
		struct mp_hook_info hook;
		struct mp_module module;
		struct {
			uint32_t tid;
			const char *name;
		} thread;
		struct {
			uint32_t id, flags, n;
			const uint64_t *pc;
		} stack;
		struct mp_event event;
		struct mp_sample sample;
		struct mp_losses losses;
		struct {
			uint64_t pc;
			uint32_t n;
			const struct mp_symbol *at;
		} symbols;
		struct mp_finish finish;
		struct mp_culled culled;
		struct mp_section section;
		struct mp_stack_peak stack_peak;
		struct mp_activity activity; /* or of a thread */
		struct mp_map_usage map_usage;
		struct mp_process process;
		struct mp_totals totals;
		struct {
			uint32_t id;
			uint64_t bytes, blocks;
		} live;
		struct {
			uint64_t time_ns;
			const char *name;
		} mark;
	};
};

struct mpf_reader;

/**
 * mpf_open() - open a recording for one sequential pass
 * @info: filled; its strings live as long as the reader
 *
 * Return: 0, or a negative errno with @err filled (MP_EXIT_RECORDING: not a recording, unknown
 * version, cut inside the header).
 */
int mpf_open(const char *path, struct mpf_reader **r, struct mp_info *info, struct mp_err *err);

/**
 * mpf_next() - read the next item
 *
 * Return: 1 with @item filled, 0 at the end, or a negative errno with @err filled when a chunk
 * with a valid checksum does not decode (corrupt).  A truncated or damaged chunk is not an error:
 * it is the end, and mpf_truncated() reports it.
 */
int mpf_next(struct mpf_reader *r, struct mpf_item *item, struct mp_err *err);
/**
 * mpf_next_events() - read the next events, if they follow at once
 * @ev: room for @n
 *
 * Return: the number of events, less than @n before another item, at the end of a chunk, and before an
 * event that cannot be decoded: what mpf_next() returns next.
 */
uint32_t mpf_next_events(struct mpf_reader *r, struct mp_event *ev, uint32_t n);
/* Return: NULL, or one line that describes where and why reading ended before the end of the
 * recording. */
const char *mpf_truncated(const struct mpf_reader *r);
/* Skips all chunks of items but the last @chunks (at most 16), so that mpf_next() continues near
 * the end of the recording. */
void mpf_skip_to_tail(struct mpf_reader *r, uint32_t chunks);
/* Continues at the index.  Return: true if the file has one: mpf_next() then returns its items and
 * those after it. */
bool mpf_seek_index(struct mpf_reader *r);
/* Return: the maximum number of live blocks according to the finish item; 0: not known.  To be
 * called before the first mpf_next(). */
uint64_t mpf_peak_blocks(struct mpf_reader *r);
/* Return: the number of processes in the recording: 1 if it was not merged from several. */
uint32_t mpf_processes(const struct mpf_reader *r);
/* Return: the fraction of the file that has been read, from 0 to 1. */
double mpf_read_share(const struct mpf_reader *r);
/* Closes the file and frees @r, which can be NULL. */
void mpf_reader_free(struct mpf_reader *r);

/* ------------------------------------------------------------------------------- copying -- */

/* Appends an item that was read from another file.  Return: 0 or a negative errno. */
int mpf_put_item(struct mpf_writer *w, const struct mpf_item *item);

/* Return: whether both paths exist and are the same file. */
bool mpf_same_file(const char *a, const char *b);

/* Changes to make while copying. */
struct mpf_change {
	void (*info)(void *ctx, struct mp_info *info); /* can replace members; NULL: no changes */
	/* Writes @item, other items, or nothing.  Return: 0 or a negative errno. */
	int (*item)(void *ctx, struct mpf_writer *w, const struct mpf_item *item);
	int (*end)(void *ctx, struct mpf_writer *w); /* writes more items at the end; NULL: none */
	bool binaries;				     /* copy the binaries, too */
	void *ctx;
};

/**
 * mpf_copy() - copy a recording item by item
 * @to: must not be the same file as @from; removed if the copy fails
 * @truncated: set to whether @from was cut off or had incomplete binaries, which were left out;
 * then @to is marked as cut off, too
 *
 * Return: 0, or a negative errno with @err filled.
 */
int mpf_copy(const char *from, const char *to, const struct mpf_change *change, bool *truncated,
	     struct mp_err *err);

#endif
