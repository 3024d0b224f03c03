/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process under our hand: look, seize, stop, remote system calls, resume, let go.
 * Read attach-hazards in doc/safety.md first.  Order of life:
 *
 *	target_look()	 facts and refusals; touches nothing
 *	target_seize()	 all threads seized, still running
 *	target_stop()	 all threads stopped
 *	  thread_get_regs(), remote_begin(), remote_syscall(), remote_end(), mem_write()
 *	target_run()	 all threads run for a moment, still seized
 *	target_release() ptrace let go; also from the stopped state (resumes)
 */
#ifndef ATTACH_TARGET_H
#define ATTACH_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "arch/arch.h"
#include "attach/mem.h"
#include "attach/procfs.h"
#include "lib/check.h"
#include "lib/deadline.h"
#include "lib/err.h"
#include "lib/vec.h"

enum thread_state {
	THREAD_RUNNING,
	THREAD_STOPPED,	      /* by our interrupt */
	THREAD_GROUP_STOPPED, /* job control stop: stays stopped after release */
	THREAD_IN_VFORK, /* waits in the kernel for its vfork child: cannot move, has no registers
			  */
	THREAD_GONE,
};

struct thread {
	pid_t tid;
	enum thread_state state;
	bool regs_valid;
	struct arch_regs regs; /* by thread_get_regs() */
	bool interrupt_sent;   /* and it is to stop, whatever it meets before */
	bool lent;	       /* since it stopped it made calls of ours */
	bool keep;	       /* for target_run_kept(), target_release_others() */
};

/* Pieces of code in the target's files; emergency_find(). */
struct target_code {
	uint64_t syscall_return, sigreturn;
	uint8_t sigreturn_form;
	bool other_form;     /* it is arch.other_return */
	uint8_t return_pops; /* bytes it takes from the stack before it returns */
};

struct target {
	pid_t pid;
	int pidfd;
	const struct arch *arch;
	struct mem mem;
	struct proc_status
	    status; /* from target_look(); seccomp: of any thread, when it was seized */
	VEC(struct thread *) threads;
	VEC(pid_t) late;	/* see target_release_late() */
	uint64_t stopped_at_ns; /* CLOCK_MONOTONIC of the first interrupt */
	uint64_t last_stop_ns;	/* how long the last stop lasted */
	bool execed;		/* an exec was seen: the address space is another one */
	bool exited;
	bool some_only;		/* by target_seize_one(), target_release_others() */
	uint32_t filters_asked; /* seccomp_forbids() */
	struct target_code code;
	struct maps maps; /* target_maps()'s own */
	bool maps_known;
};

/**
 * target_look() - check that @pid can be attached to, and open it; touches nothing
 *
 * Refuses, each with its own exit status and one line that helps: no such process, no permission
 * (says which: ptrace_scope, capability, user namespace, and what would help), kernel thread,
 * zombie, traced (by whom), another architecture.
 * Return: 0 with @t ready for target_seize(), or a negative errno with @err filled.
 */
__must_check int target_look(struct target *t, pid_t pid, struct mp_err *err);

/* A process that shares the memory of @t and is none of its threads (clone() with CLONE_VM): it
 * would not stop with them.  The child of a vfork(), for which its parent waits, does not count.
 * Return: its pid, or 0. */
pid_t target_sharer(const struct target *t);

/* PTRACE_SEIZE for every thread until a full pass over /proc/PID/task finds no new one; newborns
 * come by PTRACE_O_TRACECLONE.  Threads keep running.  While the process is in execve() it cannot
 * be seized: after @deadline it is left alone (-ETIMEDOUT). */
__must_check int target_seize(struct target *t, const struct deadline *deadline,
			      struct mp_err *err);

/* The same for one thread only, until target_release(): the others run on, also through
 * target_stop(). */
__must_check int target_seize_one(struct target *t, struct mp_err *err);
/* The same for thread @tid. */
__must_check int target_seize_thread(struct target *t, pid_t tid, struct mp_err *err);

/* PTRACE_INTERRUPT and wait for all.  On failure everything is resumed and released: the deadline
 * has passed (names the thread and what it waits in), the process has ended, or it runs another
 * program since target_look() (-ESRCH, MP_EXIT_NO_PROCESS). */
__must_check int target_stop(struct target *t, const struct deadline *deadline, struct mp_err *err);

/* Does the process run the program that target_look() found, as far as is known?  It need not be
 * stopped.  Return: 0, or -ESRCH with @err after an execve() or its end. */
int target_check_program(const struct target *t, struct mp_err *err);

/**
 * target_ask_again() - something failed: was it because the process ended or called execve()?
 * @t: after target_look(), not closed
 * @error, @err: what failed; replaced if that was the reason
 *
 * Waits some milliseconds for a process that was killed to be seen to end.
 * Return: @error, or -ESRCH.
 */
int target_ask_again(const struct target *t, int error, struct mp_err *err);

/**
 * target_maps() - mappings of the stopped target @t
 * Read once in a stop, for of 65,000 mappings that takes some 30 ms; and again when the target has
 * changed them by remote_syscall().
 * @maps: set to them; they stay @t's, until the next such call or stop
 * Return: as maps_read().
 */
__must_check int target_maps(struct target *t, const struct maps **maps);
/* They are not what they were. */
void target_maps_changed(struct target *t);

/* Registers of a stopped thread; read once in a stop. */
__must_check int thread_get_regs(struct target *t, struct thread *th);
/* Return: thread pointer of a stopped thread whose registers were read; 0: not known. */
uint64_t thread_get_tp(const struct target *t, const struct thread *th);
/* Writes them, at once: whoever kills memprof between two steps leaves the target right. */
__must_check int thread_put_regs(struct target *t, struct thread *th, const struct arch_regs *regs);

/* Says why ptrace or /proc refused with @error: who traces it, which permission is missing and
 * what would help.  Return: a negative errno, @err filled. */
__must_check int target_refused(const struct target *t, int error, struct mp_err *err);

/*
 * The stopped threads run for @us microseconds, still seized.  What a thread
 * stops for meanwhile, a signal, a new thread, is passed on: it would stand until the next
 * target_stop(), and one that is sent signals all the time would never come further than to the
 * start of its handler.  What takes longer is done after target_release().
 */
void target_run(struct target *t, uint32_t us);
/**
 * target_run_kept() - let some threads of the stopped target run, within the same stop
 *
 * Those that are marked keep run; the others stay stopped and leave them the processors.  A thread
 * is stopped again, and its mark cleared, when @busy(@ctx, thread) is false; all are when none is
 * left or after @us microseconds.
 * @deadline: for stopping them
 * Return: 0 with all threads stopped; otherwise as target_stop().
 */
__must_check int target_run_kept(struct target *t, uint32_t us,
				 bool (*busy)(const void *ctx, const struct thread *th),
				 const void *ctx, const struct deadline *deadline,
				 struct mp_err *err);
/* Releases the stopped threads that are not marked keep.  Until target_release() the others are all
 * that target_run() and target_stop() concern. */
void target_release_others(struct target *t);
void target_release(struct target *t); /* PTRACE_DETACH of every thread; job stops stay */
/*
 * Threads that could not be let go with the others, for they did not stop (a vfork() that lasts, a
 * disk that does not answer, a busy machine) or were killed at that moment, and children that were
 * forked while their parent was traced and have not come to their first stop yet, are still traced:
 * they would stand at their next stop, and die in part only.  A process that continues
 * after target_release() calls this several times a second.  Return: how many there are.
 */
uint32_t target_release_late(struct target *t);
void target_close(struct target *t); /* releases if needed, frees everything */

/*
 * Remote system calls: need the target stopped.  remote_begin() chooses a carrier thread (user
 * mode before an interrupted system call; never D state) and blocks its signals; remote_end() puts
 * everything back, the interrupted system call included.  If memprof is killed in between, the
 * carrier puts itself back (attach/emergency.h): by rt_sigreturn, and where a filter does not allow
 * that remote_begin() fails (-EACCES).
 */
struct remote {
	struct target *t;
	struct thread *carrier;
	struct arch_regs saved;
	uint64_t sigmask[2]; /* as many bytes of it as struct arch, sigset_size */
	long before;  /* number of the system call it stood before (struct arch, before_syscall) */
	bool goes_on; /* the kernel goes on with that one by restart_syscall (change_number) */
	/* attach/remote.c's and emergency.c's own */
	uint8_t *scratch; /* what was below the carrier's stack */
	uint64_t scratch_addr;
	size_t scratch_len;
	uint64_t frame;
	bool active;
	int failed;	/* what a call before failed with: it may or may not have been made */
	int last_event; /* PTRACE_EVENT_CLONE ... met during the last call */
	unsigned long event_message;
	uint64_t wait_ms; /* for one call; remote_begin() sets what all but clone() need */
	bool filtered;	  /* each call is asked of the carrier's seccomp filters first */
};
__must_check int remote_begin(struct remote *r, struct target *t, struct mp_err *err);
/* Return: the system call's result (value or -errno) in *@result; 0 or -errno as status: -EACCES
 * when a seccomp filter of the carrier does not allow the call, or cannot be read; it was not made.
 */
__must_check int remote_syscall(struct remote *r, long nr, const uint64_t args[6], long *result);
/* The same; @at_entry(@ctx) is called when the call can only go on: if memprof dies from here on,
 * the kernel makes it nevertheless. */
__must_check int remote_syscall_at_entry(struct remote *r, long nr, const uint64_t args[6],
					 long *result, void (*at_entry)(void *ctx), void *ctx);
/* Puts a string (at most 200 bytes with its NUL) below the carrier's stack until remote_end().
 * Return: its address in the target, 0 on failure. */
uint64_t remote_string(struct remote *r, const char *text);
__must_check int remote_end(struct remote *r);

/*
 * Would the target's seccomp filters let these system calls pass?  Reads the filters (needs
 * CAP_SYS_ADMIN) and evaluates them.  @args may be NULL (zeros).
 * Return: 1 allowed, 0 refused, -errno if the filters cannot be read.
 */
__must_check int seccomp_allows(struct target *t, struct thread *th, long nr,
				const uint64_t args[6], uint64_t insn_addr);

/**
 * target_launch() - start a program stopped where its libraries are mapped and nothing of it ran
 *
 * The child is at the dynamic linker's r_brk with RT_CONSISTENT, or at the entry point of a static
 * program; it is seized and stopped, like after target_stop().  No byte of it stays changed.
 * @argv: NULL-terminated; @argv[0] is looked up in PATH.
 */
__must_check int target_launch(struct target *t, char *const argv[], struct mp_err *err);

#endif
