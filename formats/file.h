/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The recording file: append-only chunks, each with header, length, checksum and a zstd payload
 * (formats/FORMAT.md is normative).  Byte order independent.  A file cut off anywhere loads up to
 * its last whole chunk.
 */
#ifndef FORMATS_FILE_H
#define FORMATS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "formats/event.h"
#include "lib/err.h"

/* Which events a recording is about. */
enum mp_what { MP_ALLOCATIONS, MP_PAGE_FAULTS };

/* What the recording is of.  Strings are owned by whoever filled the struct. */
struct mp_info {
	uint8_t id[16]; /* random; shown as 32 hex digits */
	uint32_t pid;
	uint16_t machine;	/* ELF e_machine */
	uint8_t mode;		/* 0 attached, 1 run */
	uint64_t start_unix_ns; /* wall clock at time_ns 0 */
	uint64_t process_start_unix_ns;
	uint64_t sample_interval; /* bytes; 0: every allocation is recorded */
	uint8_t what;		  /* enum mp_what */
	uint8_t user_only;	  /* page faults: not those that system calls made */
	uint32_t page_size;	  /* page faults: of the smallest pages, bytes */
	uint32_t piece;		  /* of a recording in pieces (--rotate), which have one id */
	uint64_t piece_ns;	  /* when it begins, after the start of the first one */
	uint32_t processes;	  /* of a merged recording of several; else 0 */
	const char *executable;	  /* path */
	const char *cmdline;	  /* arguments joined by blanks, quoted where needed */
	const char *memprof_version;
};

struct mp_hook_info {
	const char *name;   /* malloc */
	const char *module; /* libc.so.6 */
	uint8_t kind;	    /* enum ss_hook_kind */
};

struct mp_module {
	uint64_t start, end, file_offset; /* executable mapping */
	uint64_t bias;			  /* address - ELF virtual address */
	uint64_t time_ns;		  /* when it appeared; 0: present at start */
	const char *path;
	uint8_t build_id[32];
	uint8_t build_id_len;
};

/* A piece of a file that the recording carries; see formats/binaries.h. */
struct mp_binary {
	const char *path; /* as the module's */
	uint8_t build_id[32];
	uint8_t build_id_len;
	uint64_t size, offset; /* bytes of the file; where in it the piece begins */
	const void *data;
	size_t n; /* at most MPF_BINARY_PIECE */
};
#define MPF_BINARY_PIECE (256u << 10)

/* One of several processes in a merged recording.  Addresses of its events have its number in the
 * bits from MP_PROCESS_SHIFT on. */
struct mp_process {
	uint32_t number, pid;
	uint64_t start_ns, end_ns; /* when it was recorded, as event times */
	const char *executable, *cmdline;
};
#define MP_PROCESS_SHIFT 48
#define MP_MAX_PROCESSES 1024u

/* Memory of the target from outside, about once a second, in bytes. */
struct mp_sample {
	uint64_t time_ns;
	/* The program's own; older recordings have the session's in it. */
	uint64_t rss, anonymous, file, swap, address_space;
	/* Beside it what memprof mapped into the process. */
	uint64_t session_rss, session_anonymous, session_address_space;
};

/* What one mapping of the target holds, from /proc/PID/smaps, about every ten seconds; mappings
 * that hold nothing are left out.  Bytes. */
struct mp_map_usage {
	uint64_t time_ns; /* of the look: the same for all mappings of it */
	uint64_t start, end, rss, anonymous, swap;
	uint32_t prot; /* PROT_* */
	const char *path;
};

/* Losses and marks; cumulative, the last one in the file counts. */
struct mp_losses {
	uint64_t lost_alloc, lost_free, lost_realloc, lost_map, lost_other; /* events */
	uint64_t lost_bytes;   /* requested bytes of lost allocations */
	uint64_t lost_no_slot; /* events of threads without a slot */
	uint64_t stale;	       /* calls while the recorder did not answer */
	uint64_t queue_batches, queue_events, queue_bytes,
	    queue_peak_bytes; /* dropped by the queue */
	uint64_t stacks_full; /* events whose stack found no room */
	uint64_t missed_new;
	uint64_t foreign_frees; /* frees of blocks older than the recording */
	uint64_t foreign_reallocs;
	uint64_t housekeeping_frees; /* the allocator's module freed what it had been given back
					already (glibc at a thread's end): not a program's free */
	uint64_t mismatches;	     /* allocation of an address that was live */
	uint64_t sideband_lost;	     /* PERF_RECORD_LOST of the kernel's rings */
	uint64_t stacks_total, stacks_complete; /* events with a stack; of them complete */
	uint64_t stacks_cached;
	uint64_t left_out_allocs, left_out_frees; /* not selected, or while paused; not a loss */
	/* Of the sums above, what may have ended blocks: frees and reallocs. */
	uint64_t stale_frees, no_slot_frees;
	/* queue_events by kind; queue_bytes are bytes of records, these were asked for: */
	uint64_t queue_alloc, queue_free, queue_realloc, queue_map, queue_other;
	uint64_t queue_requested;
	uint64_t queue_ceiling;
	uint64_t first_loss_ns, last_loss_ns;	/* all losses lie between; 0, 0: none */
	uint64_t stacks_checked, stacks_differ; /* checking build: compared with complete walks */
	/* Records of the agent that recorders of this session have seen, and that were lost when
	 * one took over from another. */
	uint64_t seen_alloc, seen_free, seen_realloc, seen_map;
	uint64_t restart_alloc, restart_free, restart_realloc, restart_map;
};

/*
 * Blocks that are not in the file as events because they lived for a short time only: sums of
 * blocks that were allocated and freed alike.
 */
struct mp_culled {
	uint64_t time_ns; /* of the newest free in it */
	uint32_t stack, tid, free_tid;
	uint16_t hook, free_hook; /* the functions called */
	uint16_t process;	  /* its number, of a recording of several */
	uint64_t blocks, bytes, usable;
	uint64_t temporary, temporary_bytes; /* of them, as in report/model.h */
};

/* Sums of all events, as the recorder had them at the end. */
struct mp_totals {
	uint64_t events, allocations, allocated_bytes, frees;
	uint64_t live_bytes, live_blocks; /* of a sample: estimates */
};

/* All lost events, of every kind and place. */
uint64_t mp_losses_events(const struct mp_losses *l);
/* Of them those that may have ended a live block: so many live blocks may in truth be free. */
uint64_t mp_losses_frees(const struct mp_losses *l);

/* What belongs to a recording, not to its session: begins anew with each piece. */
void mp_losses_begin_piece(struct mp_losses *l);
/* Makes @sum, the losses up to a piece, those up to the @next one of the same recording, whose
 * times are @next_ns later. */
void mp_losses_continue(struct mp_losses *sum, const struct mp_losses *next, uint64_t next_ns);
/* Adds those of another process, whose times are @next_ns later. */
void mp_losses_add(struct mp_losses *sum, const struct mp_losses *next, uint64_t next_ns);

/* How the recording went; written at the end (absent if the recorder was killed). */
struct mp_finish {
	uint64_t end_ns;
	uint64_t peak_live_bytes, peak_live_blocks, peak_time_ns;
	uint64_t attach_stop_ns, detach_stop_ns; /* how long all threads were stopped */
	uint8_t reason;				 /* enum mp_end_reason */
	uint8_t restored;			 /* 1: the target is as before */
	uint8_t sideband; /* 1: module changes came from perf side-band; 0: from reading maps */
};

enum mp_end_reason {
	MP_END_DETACHED = 1,
	MP_END_EXITED,
	MP_END_EXECED,
	MP_END_TIME,
	MP_END_ERROR,
	MP_END_KEPT,   /* the session goes on, with another recorder */
	MP_END_PIECED, /* the recording goes on in its next piece */
};

/* One frame of a symbolized address; inlined frames come first (innermost first). */
struct mp_symbol {
	const char *function;	  /* demangled; NULL: unknown */
	const char *raw_function; /* as in the symbol table */
	const char *source;	  /* path; NULL: unknown */
	uint32_t line, column;	  /* 0: unknown */
	bool is_inline;
};

/* ------------------------------------------------------------------------------- writing -- */

struct mpf_writer;

/**
 * mpf_create() - start a recording file, mode 0600
 * @path: must not be a directory; an existing regular file is replaced
 * @info: copied into the header chunk
 * @hooks: @nhooks entries, index = mp_event.hook
 *
 * Return: 0, or a negative errno with @err filled (MP_EXIT_OUTPUT).
 */
int mpf_create(const char *path, const struct mp_info *info, struct mpf_writer **w,
	       struct mp_err *err);
/* Each appends one item to the current chunk; return 0 or a negative errno (write failed). */
int mpf_put_hook(struct mpf_writer *w, const struct mp_hook_info *hook); /* ids in order, from 0 */
int mpf_put_module(struct mpf_writer *w, const struct mp_module *m);
int mpf_put_thread(struct mpf_writer *w, uint32_t tid, const char *name);
/* @pc: innermost first, SS_PC_EXACT marks kept; @id in increasing order from 1. */
int mpf_put_stack(struct mpf_writer *w, uint32_t id, uint32_t flags, const uint64_t *pc,
		  uint32_t n);
int mpf_put_event(struct mpf_writer *w, const struct mp_event *ev);
int mpf_put_sample(struct mpf_writer *w, const struct mp_sample *s);
int mpf_put_map_usage(struct mpf_writer *w, const struct mp_map_usage *u);
int mpf_put_losses(struct mpf_writer *w, const struct mp_losses *l);
int mpf_put_symbols(struct mpf_writer *w, uint64_t pc, const struct mp_symbol *sym, uint32_t n);
int mpf_put_finish(struct mpf_writer *w, const struct mp_finish *f);
int mpf_put_culled(struct mpf_writer *w, const struct mp_culled *c);
/* A moment with a name, given by a person (memprof mark). */
int mpf_put_mark(struct mpf_writer *w, uint64_t time_ns, const char *name);
int mpf_put_process(struct mpf_writer *w, const struct mp_process *p);
/* Pieces of a file in order; files come behind all items. */
int mpf_put_binary(struct mpf_writer *w, const struct mp_binary *b);
/* From now on times are given as of @base_ns before the file's own zero (of a piece). */
void mpf_set_base(struct mpf_writer *w, uint64_t base_ns);
/*
 * The index, for whoever wants an answer before all events are read: what is put between these two
 * (modules, stacks, totals, live) is passed over by mpf_next() unless mpf_seek_index() was called.
 * Symbols, losses and finish come behind it.
 */
int mpf_begin_index(struct mpf_writer *w);
int mpf_put_totals(struct mpf_writer *w, const struct mp_totals *t);
/* What was allocated with stack @id (0: none) and is live. */
int mpf_put_live(struct mpf_writer *w, uint32_t id, uint64_t bytes, uint64_t blocks);
int mpf_end_index(struct mpf_writer *w);
/* Ends the current chunk and hands it to the kernel, so that a later cut cannot lose it. */
int mpf_flush(struct mpf_writer *w);
/* Bytes written so far. */
uint64_t mpf_bytes(const struct mpf_writer *w);
/* Flushes, closes and frees @w.  Return: 0 or the first error of the file's life. */
int mpf_close(struct mpf_writer *w);
/* The same for what is known to be incomplete: readers will say that it was cut off. */
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
};

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
 * mpf_next() - the next item
 *
 * Return: 1 with @item filled, 0 at the end, or a negative errno with @err filled when a chunk
 * with a valid checksum does not decode (corrupt).  A cut or damaged chunk is not an error: it is
 * the end, and mpf_truncated() says so.
 */
int mpf_next(struct mpf_reader *r, struct mpf_item *item, struct mp_err *err);
/* Return: NULL, or one line that says where and why reading ended before the file's own end. */
const char *mpf_truncated(const struct mpf_reader *r);
/* Passes over all chunks but the last @chunks whole ones: what mpf_next() then gives begins in the
 * middle of the recording. */
void mpf_skip_to_tail(struct mpf_reader *r, uint32_t chunks);
/* Return: true if the file has an index: mpf_next() then gives what is in it, and what follows. */
bool mpf_seek_index(struct mpf_reader *r);
/* Return: how many blocks were alive at most, as the file's end says; 0: it does not.  Before the
 * first mpf_next(). */
uint64_t mpf_peak_blocks(struct mpf_reader *r);
/* Return: of how many processes the recording is: 1 if it was not merged. */
uint32_t mpf_processes(const struct mpf_reader *r);
/* Return: how much of the file is read, from 0 to 1. */
double mpf_read_share(const struct mpf_reader *r);
void mpf_reader_free(struct mpf_reader *r);

/* ------------------------------------------------------------------------------- copying -- */

/* Appends what was read.  Return: 0 or a negative errno. */
int mpf_put_item(struct mpf_writer *w, const struct mpf_item *item);

/* Are both there, and one file? */
bool mpf_same_file(const char *a, const char *b);

/* What a copy changes. */
struct mpf_change {
	void (*info)(void *ctx, struct mp_info *info); /* may replace members; NULL: as it is */
	/* Writes @item, something else, or nothing.  Return: 0 or a negative errno. */
	int (*item)(void *ctx, struct mpf_writer *w, const struct mpf_item *item);
	int (*end)(void *ctx, struct mpf_writer *w); /* what comes last; NULL: nothing */
	bool binaries;				     /* are copied, too; else left out */
	void *ctx;
};

/**
 * mpf_copy() - write a recording again, item by item
 * @to: another file than @from; removed again when something fails
 * @truncated: set to whether @from was cut off, or has binaries that are not whole and were left
 *	       out; then @to says of itself that it was cut off
 *
 * Return: 0, or a negative errno with @err filled.
 */
int mpf_copy(const char *from, const char *to, const struct mpf_change *change, bool *truncated,
	     struct mp_err *err);

#endif
