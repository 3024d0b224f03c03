/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Does what is hard to profile, by mode: clone, fork, spawn, vfork, vfork-alone, handlers, jumps,
 * cancel, fibers, leaderless, leaderless-children, exec, exit.  Runs until SIGTERM (exec and exit
 * end by themselves), then prints "ok".  Exits 1 if a byte or a status is wrong.
 *
 * It has its own malloc, which can be interrupted, re-entered and left at any instruction, so that
 * handlers can allocate and jump.  Blocks of once() come from the thread's part of a pool, which is
 * reused in a circle; those of the C library are never reused.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define POOL	   (1ul << 30)
#define PART	   (1ul << 20)
#define PARTS	   512
#define THREADS	   6
#define FIBER	   (64ul << 10)
#define AGENT_ROOM 3072 /* for the handler, malloc and a profiler's hook */

static char pool[POOL], part[PARTS][PART] __attribute__((aligned(16)));
static size_t used, parts;
static __thread char *mine;
static __thread size_t mine_used;
static __thread volatile sig_atomic_t in_once;
static volatile sig_atomic_t stop;
static char **environment;
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t may_jump;
static int jumping;

void *malloc(size_t size)
{
	size_t need = (size + 31) & ~15ul, at;
	char *p;

	if (in_once) {
		if (!mine)
			mine = part[__atomic_fetch_add(&parts, 1, __ATOMIC_RELAXED) % PARTS];
		do {
			at = __atomic_fetch_add(&mine_used, need, __ATOMIC_RELAXED) % PART;
		} while (at + need > PART);
		p = mine + at;
	} else {
		at = __atomic_fetch_add(&used, need, __ATOMIC_RELAXED);
		if (at + need > POOL)
			return NULL;
		p = pool + at;
	}
	*(size_t *)p = size;
	return p + 16;
}

/* The asm hides from the compiler that @p is a block, before which it assumes nothing to be. */
static size_t *header(void *p)
{
	__asm__("" : "+r"(p));
	return (size_t *)p - 2;
}

void free(void *p)
{
	if (p)
		header(p)[0] = 0;
}

void *calloc(size_t n, size_t size)
{
	void *p = malloc(n * size);

	__asm__("" : "+r"(p)); /* else the compiler turns this into a call of calloc */
	return p ? memset(p, 0, n * size) : NULL;
}

void *realloc(void *p, size_t size)
{
	char *q = malloc(size);

	if (p) {
		size_t old = header(p)[0];

		memcpy(q, p, old < size ? old : size);
		free(p);
	}
	return q;
}

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void wrong(const char *what)
{
	(void)!write(2, what, strlen(what));
	_exit(1);
}

static void once(unsigned x)
{
	size_t n = 1 + x % 600;
	sig_atomic_t nested = in_once;
	char *p;

	in_once = 1;
	p = x & 1 ? malloc(n) : calloc(1, n);
	memset(p, (int)x, n);
	p = realloc(p, n + 100);
	if (p[0] != (char)x || p[n - 1] != (char)x)
		wrong("wrong byte\n");
	free(p);
	in_once = nested;
}

static void *allocate(void *arg)
{
	unsigned x = (unsigned)(uintptr_t)arg;

	while (!stop)
		once(x++);
	return NULL;
}

static void *short_life(void *arg)
{
	for (unsigned i = 0; i < 50; i++)
		once((unsigned)(uintptr_t)arg + i);
	return NULL;
}

static void clone_storm(void)
{
	pthread_t th[THREADS];

	while (!stop) {
		for (long i = 0; i < THREADS; i++) {
			if (pthread_create(&th[i], NULL, short_life, (void *)i))
				wrong("pthread_create\n");
		}
		for (int i = 0; i < THREADS; i++)
			pthread_join(th[i], NULL);
	}
}

static void reap(pid_t pid, int want)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			wrong("waitpid\n");
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != want)
		wrong("wrong status of a child\n");
}

static void fork_storm(void)
{
	pthread_t th;

	pthread_create(&th, NULL, allocate, NULL);
	while (!stop) {
		pid_t pid = fork();

		if (!pid) {
			for (unsigned i = 0; i < 100; i++)
				once(i);
			_exit(7);
		}
		reap(pid, 7);
	}
	pthread_join(th, NULL);
}

static void spawn_storm(void)
{
	char *argv[] = {"true", NULL};
	pthread_t th;

	pthread_create(&th, NULL, allocate, NULL);
	while (!stop) {
		pid_t pid;

		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environment))
			wrong("posix_spawn\n");
		reap(pid, 0);
		pid = vfork();
		if (!pid) {
			execve("/bin/true", argv, environment);
			_exit(9);
		}
		reap(pid, 0);
	}
	pthread_join(th, NULL);
}

/* Makes vfork() children that live @ms milliseconds. */
static void vforks(int ms)
{
	while (!stop) {
		pid_t pid = vfork();

		if (!pid) {
			poll(NULL, 0, ms);
			_exit(7);
		}
		reap(pid, 7);
		once(0);
	}
}

/* The children live longer than memprof waits for a thread to stop. */
static void long_vforks(void)
{
	pthread_t th;

	pthread_create(&th, NULL, allocate, NULL);
	vforks(5000);
	pthread_join(th, NULL);
}

static void handler(int sig)
{
	(void)sig;
	once(3);
	if (jumping && may_jump)
		siglongjmp(back, 1);
}

/* Sets an alternate stack that is as small as possible, with a guard page below it. */
static void small_stack(void)
{
	size_t size = getauxval(AT_MINSIGSTKSZ) + AGENT_ROOM;
	size_t length = ((size + 4095) & ~4095ul) + 4096;
	char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t ss = {.ss_sp = p + length - size, .ss_size = size};

	mprotect(p, 4096, PROT_NONE);
	if (sigaltstack(&ss, NULL))
		wrong("sigaltstack\n");
}

static void *interrupted(void *arg)
{
	volatile unsigned x = (unsigned)(uintptr_t)arg;
	sigset_t set;

	small_stack();
	/*
	 * siglongjmp() must not restore the mask: it would do so before it leaves the alternate stack, which has
	 * no room for a second signal frame where frames are large (AVX-512).
	 */
	sigsetjmp(back, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	may_jump = 1;
	while (!stop)
		once(x++);
	may_jump = 0;
	return NULL;
}

static void interrupt_storm(void)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART};
	pthread_t th[THREADS];

	sigaction(SIGUSR1, &sa, NULL);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&th[i], NULL, interrupted, (void *)i);
	while (!stop) {
		for (int i = 0; i < THREADS; i++)
			pthread_kill(th[i], SIGUSR1);
		usleep(200);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
}

static void *cancellable(void *arg)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (unsigned x = (unsigned)(uintptr_t)arg;; x++)
		once(x);
	return NULL;
}

static void cancel_storm(void)
{
	while (!stop) {
		pthread_t th[THREADS];

		for (long i = 0; i < THREADS; i++)
			pthread_create(&th[i], NULL, cancellable, (void *)i);
		usleep(2000);
		for (int i = 0; i < THREADS; i++) {
			pthread_cancel(th[i]);
			pthread_join(th[i], NULL);
		}
	}
}

struct fibers {
	ucontext_t main, fiber;
};

static void fiber(unsigned low, unsigned high)
{
	struct fibers *f = (struct fibers *)((uintptr_t)high << 32 | low);

	for (unsigned i = 0;; i++) {
		once(i);
		swapcontext(&f->fiber, &f->main);
	}
}

/* Maps and unmaps the fibers' stacks, so that new ones get the addresses of old ones. */
static void *switch_fibers(void *arg)
{
	(void)arg;
	while (!stop) {
		struct fibers f;
		void *stack =
		    mmap(NULL, FIBER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		getcontext(&f.fiber);
		f.fiber.uc_stack.ss_sp = stack;
		f.fiber.uc_stack.ss_size = FIBER;
		makecontext(&f.fiber, (void (*)(void))fiber, 2, (unsigned)(uintptr_t)&f,
			    (unsigned)((uintptr_t)&f >> 32));
		for (int i = 0; i < 100; i++) {
			swapcontext(&f.main, &f.fiber);
			once((unsigned)i);
		}
		munmap(stack, FIBER);
	}
	return NULL;
}

static void all_threads(void *(*fn)(void *))
{
	pthread_t th[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&th[i], NULL, fn, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(th[i], NULL);
}

static void *last_one(void *arg)
{
	pthread_t th;

	(void)arg;
	pthread_create(&th, NULL, allocate, NULL);
	pthread_join(th, NULL);
	puts("ok");
	exit(0);
}

static void end_first_thread(void)
{
	pthread_t th;

	pthread_create(&th, NULL, last_one, NULL);
	pthread_exit(NULL);
}

/* Forks children whose first thread ends at once, and that run for a second. */
static void fork_leaderless(void)
{
	while (!stop) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			end_first_thread();
		}
		usleep(1000000);
		kill(pid, SIGTERM);
		reap(pid, 0);
	}
}

static void *end_all(void *arg)
{
	char *const argv[] = {"/bin/echo", "ok", NULL};

	usleep(1500000);
	if (!strcmp(arg, "exec"))
		execve(argv[0], argv, environment);
	if (write(1, "ok\n", 3) == 3)
		_exit(0);
	return NULL;
}

int main(int argc, char **argv, char **envp)
{
	const char *mode = argc > 1 ? argv[1] : "clone";
	pthread_t th;

	environment = envp;
	signal(SIGTERM, on_term);
	alarm(600);
	if (!strcmp(mode, "clone")) {
		clone_storm();
	} else if (!strcmp(mode, "fork")) {
		fork_storm();
	} else if (!strcmp(mode, "vfork")) {
		long_vforks();
	} else if (!strcmp(mode, "vfork-alone")) {
		vforks(200);
	} else if (!strcmp(mode, "spawn")) {
		spawn_storm();
	} else if (!strcmp(mode, "handlers") || !strcmp(mode, "jumps")) {
		jumping = mode[0] == 'j';
		interrupt_storm();
	} else if (!strcmp(mode, "cancel")) {
		cancel_storm();
	} else if (!strcmp(mode, "fibers")) {
		all_threads(switch_fibers);
	} else if (!strcmp(mode, "leaderless")) {
		end_first_thread();
	} else if (!strcmp(mode, "leaderless-children")) {
		fork_leaderless();
	} else {
		pthread_create(&th, NULL, end_all, (void *)mode);
		all_threads(allocate);
	}
	puts("ok");
	return 0;
}
