/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that each signal is handled once, in order, with its value, and the calls that signals
 * end.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <unistd.h>
#include "chaos.h"

#define QUEUED (SIGRTMIN + 2) /* SA_RESTART */
#define ENDS   (SIGRTMIN + 3) /* ends a system call */
#define JUMPS  (SIGRTMIN + 4) /* its handler, on an alternate stack, ends by siglongjmp() */
#define EACH   100

static _Thread_local struct actor *volatile who;
static _Thread_local volatile int expected, handled;
static _Thread_local sigjmp_buf back;
static _Thread_local void *volatile fault_at;

static void on_queued(int sig, siginfo_t *info, void *context)
{
	(void)context;
	must(who,
	     info->si_signo == sig && info->si_code == SI_QUEUE && info->si_pid == getpid() &&
		 info->si_value.sival_int == expected,
	     "sigqueue: expected %d, got %d (code %d)", expected, info->si_value.sival_int,
	     info->si_code);
	expected++;
	errno = ENOTTY; /* not visible to the interrupted code */
}

struct sender {
	struct actor *a;
	pthread_t to;
	int fd;
	int signal;
};

static void *send_values(void *arg)
{
	struct sender *s = arg;

	for (int i = 0; i < EACH; i++) {
		int error;

		while ((error = pthread_sigqueue(s->to, s->signal,
						 (union sigval){.sival_int = i})) == EAGAIN)
			pause_us(100);
		must(s->a, !error, "pthread_sigqueue: expected 0, got %s", strerror(error));
		if (i % 10 == 9)
			pause_us(5000);
	}
	must(s->a, write(s->fd, "x", 1) == 1, "write: expected 1, got %s", strerror(errno));
	return NULL;
}

/* All signals arrive during a read(), which must continue. */
static void sigqueue_round(struct actor *a)
{
	struct sender s = {.a = a, .to = pthread_self(), .signal = QUEUED};
	int fd[2];
	pthread_t th;
	ssize_t n;
	char c = 0;

	if (pipe(fd))
		give_up("pipe");
	s.fd = fd[1];
	who = a;
	expected = 0;
	unblock(QUEUED);
	th = begin(send_values, &s);
	n = read(fd[0], &c, 1);
	must(a, n == 1 && c == 'x', "read with SA_RESTART: expected a byte, got %ld (%s)", (long)n,
	     n < 0 ? strerror(errno) : "");
	pthread_join(th, NULL);
	must(a, expected == EACH, "sigqueue: expected %d signals, got %d", EACH, expected);
	block(QUEUED);
	close(fd[0]);
	close(fd[1]);
}

static void on_end(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	handled++;
}

static void *send_end(void *arg)
{
	struct sender *s = arg;

	pause_us(8000);
	pthread_sigqueue(s->to, ENDS, (union sigval){.sival_int = 0});
	return NULL;
}

static long in_ppoll(const sigset_t *mask)
{
	return ppoll(NULL, 0, &(struct timespec){20, 0}, mask);
}

static long in_pselect(const sigset_t *mask)
{
	return pselect(0, NULL, NULL, NULL, &(struct timespec){20, 0}, mask);
}

static long in_epoll_pwait(const sigset_t *mask)
{
	struct epoll_event e;
	int fd = epoll_create1(EPOLL_CLOEXEC);
	long ret = epoll_pwait(fd, &e, 1, 20000, mask);
	int error = errno;

	close(fd);
	errno = error;
	return ret;
}

static long in_sigsuspend(const sigset_t *mask)
{
	return sigsuspend(mask);
}

static const struct {
	const char *name;
	long (*call)(const sigset_t *mask);
	bool kernel; /* can end by EINTR when memprof is killed */
} ended[] = {{"ppoll", in_ppoll, false},
	     {"pselect", in_pselect, false},
	     {"epoll_pwait", in_epoll_pwait, true},
	     {"sigsuspend", in_sigsuspend, false}};

/* The signal is unblocked only during the call: it must return EINTR after one run of the handler.
 */
static void eintr_round(struct actor *a)
{
	sigset_t mask, now;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	sigdelset(&mask, ENDS);
	for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++) {
		struct sender s = {.a = a, .to = pthread_self()};
		pthread_t th = begin(send_end, &s);
		long ret;

		do {
			handled = 0;
			ret = ended[i].call(&mask);
		} while (ended[i].kernel && !handled && was_cut_off(a, ret));
		must(a, ret == -1 && errno == EINTR && handled == 1,
		     "%s: expected EINTR by one handler, got %ld (%s) with %d", ended[i].name, ret,
		     ret == -1 ? strerror(errno) : "", handled);
		pthread_sigmask(SIG_BLOCK, NULL, &now);
		must(a, sigismember(&now, ENDS) == 1, "%s: expected the signal to be blocked again",
		     ended[i].name);
		pthread_join(th, NULL);
	}
}

static void on_jump(int sig, siginfo_t *info, void *context)
{
	volatile char room[2000]; /* on the alternate stack */
	stack_t st;

	(void)sig;
	(void)info;
	(void)context;
	room[0] = room[1999] = 1;
	sigaltstack(NULL, &st);
	must(who, (char *)room >= (char *)st.ss_sp && (char *)room < (char *)st.ss_sp + st.ss_size,
	     "sigaltstack: expected the handler on it, it was elsewhere");
	siglongjmp(back, 1 + room[1999]);
}

static void *send_jumps(void *arg)
{
	struct sender *s = arg;

	pause_us(3000);
	pthread_kill(s->to, JUMPS);
	return NULL;
}

/* A handler leaves a wait by siglongjmp(), which must restore the signal mask. */
static void jumps_round(struct actor *a)
{
	struct sender s = {.a = a, .to = pthread_self()};
	stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536}, off = {.ss_flags = SS_DISABLE};
	sigset_t before, after;
	pthread_t th;
	volatile int jumped = 0;

	who = a;
	sigaltstack(&st, NULL);
	for (volatile int i = 0; i < 5; i++) {
		jumped = 0;
		pthread_sigmask(SIG_BLOCK, NULL, &before);
		th = begin(send_jumps, &s);
		if (!sigsetjmp(back, 1)) {
			unblock(JUMPS);
			poll(NULL, 0, 20000);
			must(a, false, "poll: expected to be left by siglongjmp, it returned");
		} else {
			jumped = 1;
		}
		pthread_sigmask(SIG_BLOCK, NULL, &after);
		must(a, jumped && !memcmp(&before, &after, _NSIG / 8),
		     "siglongjmp: expected the mask of sigsetjmp, got another");
		pthread_join(th, NULL);
	}
	sigaltstack(&off, NULL);
	free(st.ss_sp);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (who)
		must(who, info->si_code > 0,
		     "breakpoint: expected SIGTRAP by the kernel, got code %d", info->si_code);
	handled++;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (!who || !must(who, info->si_addr == fault_at,
			  "fault: expected SIGSEGV at %p, got it at %p (code %d)", fault_at,
			  info->si_addr, info->si_code))
		signal(sig, SIG_DFL);
	handled++;
	mprotect((void *)((uintptr_t)fault_at & ~4095ul), 4096, PROT_READ | PROT_WRITE);
}

/* Changes errno and restores it: the interrupted code must find its own value. */
static void on_errno(int sig, siginfo_t *info, void *context)
{
	int saved = errno;

	(void)sig;
	(void)info;
	(void)context;
	close(-1);
	handled++;
	errno = saved;
}

#define NOTES (SIGRTMIN + 5)

/* Signals that the thread causes itself: breakpoints, faults, and pthread_kill(). */
static void faults_round(struct actor *a)
{
	char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int want = 0;

	if (page == MAP_FAILED)
		give_up("mmap");
	who = a;
	handled = 0;
	for (int i = 0; i < 50; i++) {
#if defined(__x86_64__)
		__asm__ volatile("int3");
		want++;
#endif
		mprotect(page, 4096, PROT_READ);
		fault_at = page + i * 8;
		*(volatile char *)fault_at = (char)i;
		want++;
		must(a, page[i * 8] == (char)i, "fault: expected the store to be done after it");
		errno = 1000 + i;
		unblock(NOTES);
		pthread_kill(pthread_self(), NOTES);
		block(NOTES);
		must(a, errno == 1000 + i, "errno: expected %d, got %d", 1000 + i, errno);
		want++;
		must(a, handled == want, "expected %d handlers, got %d", want, handled);
		if (i % 10 == 0)
			pause_us(1000);
	}
	munmap(page, 4096);
}

void signals_prepare(void)
{
	handle(QUEUED, on_queued, SA_RESTART);
	handle(ENDS, on_end, 0);
	handle(JUMPS, on_jump, SA_ONSTACK);
	handle(NOTES, on_errno, 0);
	handle(SIGTRAP, on_trap, 0);
	handle(SIGSEGV, on_fault, 0);
}

struct actor signals[] = {
    {.name = "sigqueue",
     .round = sigqueue_round,
     .guaranteed = "every queued signal is handled once, in order, with its value; a read() with "
		   "SA_RESTART goes on"},
    {.name = "eintr",
     .round = eintr_round,
     .cut_off = true,
     .guaranteed =
	 "ppoll(), pselect(), epoll_pwait(), sigsuspend(): EINTR if, and only if, a handler ran",
     .but = "kill -9: epoll_pwait() also without"},
    {.name = "jumps",
     .round = jumps_round,
     .guaranteed =
	 "handlers run on their alternate stack; siglongjmp() out of a wait brings the mask back"},
    {.name = "faults",
     .round = faults_round,
     .guaranteed = "its own breakpoints and faults reach its handlers once, with their address; "
		   "errno is preserved"},
    {0}};
