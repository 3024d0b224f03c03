/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A session: everything memprof puts into a process, and its undoing.  The file to read first.
 *
 *	session_open()		first short stop: memory for the agent and the session block
 *	session_install()	second short stop: hooks go in; again for modules loaded later
 *	... the process runs, nobody traces it ...
 *	session_close()		last stop: text restored, memory unmapped
 *
 *	session_adopt()		finds a session whose recorder is gone, for session_close()
 *
 * Life in journal.state: OPENING -> PREPARED -> PATCHING -> LIVE -> RESTORING -> (gone | DORMANT).
 */
#ifndef INJECT_SESSION_H
#define INJECT_SESSION_H

#include <stdbool.h>
#include "attach/target.h"
#include "formats/session.h"
#include "inject/blob.h"
#include "inject/symbols.h"
#include "inject/tables.h"
#include "lib/check.h"

struct session_options {
	const char *recording; /* path, for status */
	const char *cache;     /* directory of kept unwind tables, unwind/cache.h; NULL: none */
	const char *control;   /* name of the recorder's socket; record/control.h */
	uint64_t ring_size;    /* bytes a thread, power of two; 0: default */
	bool lossless;
	bool free_stacks; /* frees are recorded with their stacks; not with sample_interval */
	bool zero; /* blocks are filled with zeros, as calloc's are; not with sample_interval */
	uint64_t sample_interval; /* bytes, at most SS_MAX_INTERVAL; 0: every allocation */
	bool no_hooks;		  /* session_observe(): tables only, no function is looked for */
};

struct session {
	struct target *t;
	struct blob blob;
	struct tables tables;
	struct hook_plan plan;	    /* all hooks so far: those of the journal, then new ones */
	uint32_t next_reused;	    /* entry of the journal that is looked at next for reuse */
	struct ss_control *block;   /* our mapping; the target may write anything there */
	struct ss_control layout;   /* what we wrote there: offsets and sizes to believe */
	struct ss_journal *journal; /* ours; what the block holds is a copy */
	struct ss_journal *shared;  /* the copy in the block */
	uint64_t length;
	uint64_t open_stop_ns, patch_stop_ns;
	uint64_t close_stop_ns; /* all stops of all threads together */
	uint64_t close_ns;	/* from the begin of session_close() to its end */
	bool adopted;
	bool look_again;	/* modules may have come while nobody watched */
	bool zero, free_stacks; /* as in session_options */
	bool observes;		/* nothing is in the target */
	bool no_hooks;		/* as in session_options */
	bool other_agent;	/* of another build of memprof: it gets no new hooks */
	uint32_t looked_at;	/* threads, by sandbox_watch() */
	bool stopped; /* the target was stopped before session_open() (run) and stays so */
};

/* Is there a session in the process?  Return: address of its block, 0: none. */
uint64_t session_find(const struct maps *maps, uint64_t *length);

/**
 * session_read() - what the session block in @pid's memory says of itself
 * @addr: where the block is
 * @c, @j: head and journal, with texts that end; the target can have written anything else there
 *
 * Return: true; false: there is no block, it may not be read, or it is of another version.
 */
bool session_read(pid_t pid, uint64_t *addr, struct ss_control *c, struct ss_journal *j);

/* Is the session with this journal, found at @addr in @pid, one of @pid or of who forked it?  A
 * recorder has the block in its own memory, too. */
bool session_is_of(const struct ss_journal *j, pid_t pid, uint64_t addr);

/**
 * session_open() - map agent, islands' room and session block
 * @t: after target_look(), or stopped (target_launch(): stays stopped)
 * Refuses before touching anything: a session is there, no allocator, seccomp.
 */
__must_check int session_open(struct session *s, struct target *t,
			      const struct session_options *options, struct mp_err *err);

/**
 * session_install() - put in the hooks that are planned and not yet in, in one short stop
 *
 * All of them or none: on failure the hooks that were in before work on, the journal names what is
 * in the target, and the new ones are forgotten (session_refresh() plans them again when more is
 * loaded).  Afterwards the target runs and is not traced; only one that was stopped before
 * session_open() stays so on failure, for session_close().
 * Return: 0 or a negative errno with @err filled.
 */
__must_check int session_install(struct session *s, struct mp_err *err);

/* Looks for new modules: their tables are published; returns 1 if some have functions to hook
 * (session_install() puts them in), 0 if not, or a negative errno. */
__must_check int session_refresh(struct session *s);

/* Opens a session that another recorder left.  If that did not come farther than a descriptor in
 * the process, @s has no block, and session_close() closes the descriptor. */
__must_check int session_adopt(struct session *s, struct target *t, struct mp_err *err);

/**
 * session_resume() - go on with a session whose recorder is gone
 * Hooks and agent stay as they are; the target is neither stopped nor traced.  The journal still
 * names the recorder before until session_take_over().
 * Return: 0; -EBUSY when it was not at work, -EPROTO when it is damaged, with @err.
 */
__must_check int session_resume(struct session *s, struct target *t, struct mp_err *err);
/* From now on the journal names this process.  Return: -EBUSY when another one was faster. */
__must_check int session_take_over(struct session *s, const struct session_options *options);
/* The recording goes on at @path (absolute): whoever takes over reads that one. */
void session_set_recording(struct session *s, const char *path);
/* Leaves it to another recorder. */
void session_leave(struct session *s);

/**
 * session_observe() - a session that puts nothing into the target
 * @t: after target_look(); runs on, is not traced
 * The block is our own memory; whoever observes the target fills its rings.  session_refresh() and
 * session_free() serve as usual, session_install() and session_close() do not.
 */
__must_check int session_observe(struct session *s, struct target *t,
				 const struct session_options *options, struct mp_err *err);
/* Enters the planned hooks that are new into the journal, as if they were in.  Return: 0, -ENOSPC.
 */
__must_check int session_observe_hooks(struct session *s);

/* Is the target a forked child of a recorded process?  It has the text and the mappings, but a
 * wiped gate; its parent's journal serves and is not written. */
bool session_is_child(struct session *s);

/* Hooks pass through from now on (no stop). */
__must_check int session_mute(struct session *s);

/**
 * session_close() - restore the target and take everything out
 *
 * When it returns 0 no thread can write to the rings any more; our mapping of the block stays
 * until session_free().  Also for a forked child that carries a copy of a live session.
 * Return: 0; -EAGAIN with @err (MP_EXIT_NOT_RESTORED) when a thread would not leave the agent: the
 * text is restored, pages stay, a later detach takes them; -ESRCH if the process is gone.
 */
__must_check int session_close(struct session *s, struct mp_err *err);
void session_free(struct session *s);

/* Lies @pc in the hooked function, behind its first byte?  @kind: enum ss_hook_kind.  Another
 * thread may be changing the entry. */
bool session_hook_spans(const struct ss_journal_hook *h, uint64_t pc, uint32_t *kind);

/* Journal's state in words. */
const char *session_state_text(uint32_t state);

#endif
