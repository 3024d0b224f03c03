/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cases of leak detection: places where a pointer can be, and ways to lose one.
 *
 *	cases list		prints the names, and how many blocks each case leaks
 *	cases NAME		sets up the case, prints "expect N" and "ready", and waits
 *
 * Built with -fsanitize=leak and -DWITH_LSAN, it runs LeakSanitizer's check instead of waiting.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define N 10 /* blocks of a case */

#if defined(__x86_64__)
#define SAVED_REGISTER "rbx"
#elif defined(__aarch64__)
#define SAVED_REGISTER "x19"
#elif defined(__arm__)
#define SAVED_REGISTER "r4"
#elif defined(__mips64)
#define SAVED_REGISTER "s0"
#endif

static void *volatile global[N];
static __thread void *volatile thread_local[N];
static pthread_key_t keys[200];
static pthread_barrier_t barrier;
static jmp_buf jump;
static ucontext_t main_context, fiber;
static volatile uintptr_t hidden[N];

static void *block(size_t size)
{
	void *p = malloc(size);

	if (!p)
		exit(1);
	return memset(p, 0x33, size);
}

static void wait_here(void)
{
	pthread_barrier_wait(&barrier);
	for (;;)
		pause();
}

static void start(void *(*f)(void *))
{
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&t, NULL, f, NULL);
	pthread_barrier_wait(&barrier);
}

static void start_and_join(void *(*f)(void *))
{
	pthread_t t;

	pthread_create(&t, NULL, f, NULL);
	pthread_join(t, NULL);
}

static void in_global(void)
{
	for (int i = 0; i < N; i++)
		global[i] = block(100);
}

static void *hold_on_stack(void *arg)
{
	void *volatile local[N];

	for (int i = 0; i < N; i++)
		local[i] = block(100);
	wait_here();
	return local[0] ? arg : NULL;
}

static void on_thread_stack(void)
{
	start(hold_on_stack);
}

static void in_tls(void)
{
	for (int i = 0; i < N; i++)
		thread_local[i] = block(100);
}

static void *hold_in_tls(void *arg)
{
	in_tls();
	wait_here();
	return arg;
}

static void in_thread_tls(void)
{
	start(hold_in_tls);
}

static void in_keys(void)
{
	for (int i = 0; i < 200; i++) {
		pthread_key_create(&keys[i], NULL);
		pthread_setspecific(keys[i], block(100));
	}
}

static void *hold_in_keys(void *arg)
{
	in_keys();
	wait_here();
	return arg;
}

static void in_thread_keys(void)
{
	start(hold_in_keys);
}

static void lost(void)
{
	for (int i = 0; i < N; i++)
		block(100);
}

static void lost_large(void)
{
	block(1 << 20);
}

static void lost_empty(void)
{
	for (int i = 0; i < N; i++)
		if (!malloc(0))
			exit(1);
}

static void lost_aligned(void)
{
	for (int i = 0; i < N; i++)
		memset(aligned_alloc(256, 512), 0x33, 512);
}

static void **chain(void)
{
	void **head = NULL;

	for (int i = 0; i < N; i++) {
		void **p = block(64);

		p[0] = head;
		head = p;
	}
	return head;
}

static void lost_chain(void)
{
	chain();
}

static void held_chain(void)
{
	global[0] = chain();
}

static void lost_ring(void)
{
	void **head = chain(), **last = head;

	while (*last)
		last = *last;
	*last = head;
}

static void lost_self(void)
{
	for (int i = 0; i < N; i++) {
		void **p = block(64);

		*p = p;
	}
}

static void ring_with_tail(void)
{
	void **head = chain(), **last = head;

	while (*last)
		last = *last;
	*last = head;
	head[1] = chain();
}

static void inner(void)
{
	for (int i = 0; i < N; i++)
		global[i] = (char *)block(200) + 104;
}

static void low_tag(void)
{
	for (int i = 0; i < N; i++)
		global[i] = (char *)block(200) + 1;
}

static void high_tag(void)
{
	for (int i = 0; i < N; i++)
		hidden[i] = (uintptr_t)block(200) | 0xfffbull << 48;
}

static void past_the_end(void)
{
	for (int i = 0; i < N; i++)
		global[i] = (char *)block(104) + 104;
}

static void in_mapping(void)
{
	void **p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < N; i++)
		p[100 * i] = block(100);
}

static void in_shared_mapping(void)
{
	void **p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < N; i++)
		p[100 * i] = block(100);
}

static void in_large_block(void)
{
	void **p = block(8 << 20);

	global[0] = p;
	for (int i = 0; i < N; i++)
		p[100000 * i] = block(100);
}

static void holder_freed(void)
{
	void **p = block(64);

	p[2] = block(100);
	free(p);
}

static void large_holder_freed(void)
{
	void **p = block(5000);

	global[0] = block(100); /* keeps p from bordering on the top chunk */
	p[200] = block(100);
	free(p);
}

static void reallocated(void)
{
	for (int i = 0; i < N; i++)
		global[i] = realloc(block(100), 100000);
}

static void overwritten(void)
{
	in_global();
	in_global();
}

static void *use_stack(void *arg)
{
	void *volatile local[N];

	for (int i = 0; i < N; i++)
		local[i] = block(100);
	return local[0] ? arg : NULL;
}

static void exited_stack(void)
{
	start_and_join(use_stack);
}

static void *use_tls(void *arg)
{
	in_tls();
	return arg;
}

static void exited_tls(void)
{
	start_and_join(use_tls);
}

static __attribute__((noinline)) void use_deep(void)
{
	void *volatile local[2000];

	for (int i = 0; i < N; i++)
		local[i] = block(100);
	(void)local[0];
}

static void stale_stack(void)
{
	use_deep();
}

static void on_fiber(void)
{
	void *volatile local[N];

	for (int i = 0; i < N; i++)
		local[i] = block(100);
	swapcontext(&fiber, &main_context);
	(void)local[0];
}

static void run_fiber(void *stack, size_t size)
{
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = size;
	makecontext(&fiber, on_fiber, 0);
	swapcontext(&main_context, &fiber);
}

static void fiber_mapped(void)
{
	run_fiber(mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		  65536);
}

static void fiber_on_heap(void)
{
	global[0] = block(65536);
	run_fiber(global[0], 65536);
}

static void at_end(int status, void *arg)
{
	(void)status;
	(void)arg;
}

static void in_on_exit(void)
{
	for (int i = 0; i < N; i++)
		on_exit(at_end, block(100));
}

static void in_epoll(void)
{
	int ep = epoll_create1(0);

	for (int i = 0; i < N; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = block(100)};

		epoll_ctl(ep, EPOLL_CTL_ADD, eventfd(0, 0), &e);
	}
}

static void in_timer(void)
{
	for (int i = 0; i < N; i++) {
		struct sigevent e = {.sigev_notify = SIGEV_SIGNAL,
				     .sigev_signo = SIGALRM,
				     .sigev_value.sival_ptr = block(100)};
		timer_t t;

		timer_create(CLOCK_MONOTONIC, &e, &t);
	}
}

static void in_jump_buffer(void)
{
	register void *p __asm__(SAVED_REGISTER) = block(100);

	__asm__ volatile("" : "+r"(p));
	if (setjmp(jump))
		exit(1);
	p = NULL;
	__asm__ volatile("" : "+r"(p));
}

static volatile int never;

static void *wait_with_mapping(void *arg)
{
	pthread_barrier_wait(&barrier);
	for (;;)
		syscall(SYS_futex, &never, FUTEX_WAIT, 0, NULL, ~hidden[0]);
	return arg;
}

/* The state inside free() of an aligned block that is a mapping of its own: only the mapping's
 * address is in a register; glibc's prev_size has the offset of the block in it. */
static void in_munmap(void)
{
	uintptr_t *p;

	if (posix_memalign((void **)&p, 1 << 16, 1 << 20))
		exit(1);
	memset(p, 0x33, 1 << 20);
	hidden[0] = ~((uintptr_t)p - 2 * sizeof(*p) - p[-2]);
	p = NULL;
	__asm__ volatile("" : "+r"(p));
	start(wait_with_mapping);
}

static void of_libraries(void)
{
	setenv("MEMPROF_CASE", "some value that is not short", 1);
	global[0] = fopen("/dev/null", "w");
	fputs("x", global[0]);
	tzset();
}

/* Addresses as a just-in-time compiler stores them: as operands of instructions, not aligned, in
 * code that is no longer writable. */
static void in_made_code(void)
{
#ifdef __x86_64__
	enum { LOAD = 11 }; /* mov $address, %rax; nop */
	unsigned char *code =
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		exit(1);
	for (int i = 0; i < N; i++) {
		void *p = block(64);

		memcpy(code + i * LOAD, "\x48\xb8", 2);
		memcpy(code + i * LOAD + 2, &p, sizeof(p));
		code[i * LOAD + 10] = 0x90;
	}
	code[N * LOAD] = 0xc3;
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC))
		exit(1);
#endif
}

static void xor_list(void)
{
	uintptr_t *last = NULL;

	for (int i = 0; i < N; i++) {
		uintptr_t *p = block(64);

		p[0] = (uintptr_t)last;
		if (last)
			last[0] ^= (uintptr_t)p;
		last = p;
	}
	global[0] = last;
}

static const struct {
	const char *name;
	void (*run)(void);
	int leaks;
} cases[] = {
    {"in_global", in_global, 0},
    {"on_thread_stack", on_thread_stack, 0},
    {"in_tls", in_tls, 0},
    {"in_thread_tls", in_thread_tls, 0},
    {"in_keys", in_keys, 0},
    {"in_thread_keys", in_thread_keys, 0},
    {"lost", lost, N},
    {"lost_large", lost_large, 1},
    {"lost_empty", lost_empty, N},
    {"lost_aligned", lost_aligned, N},
    {"lost_chain", lost_chain, N},
    {"held_chain", held_chain, 0},
    {"lost_ring", lost_ring, N},
    {"lost_self", lost_self, N},
    {"ring_with_tail", ring_with_tail, 2 * N},
    {"inner", inner, 0},
    {"low_tag", low_tag, 0},
    {"high_tag", high_tag, 0},
    {"past_the_end", past_the_end, 0},
    {"in_mapping", in_mapping, 0},
    {"in_shared_mapping", in_shared_mapping, 0},
    {"in_large_block", in_large_block, 0},
    {"holder_freed", holder_freed, 1},
    {"large_holder_freed", large_holder_freed, 1},
    {"reallocated", reallocated, 0},
    {"overwritten", overwritten, N},
    {"exited_stack", exited_stack, N},
    {"exited_tls", exited_tls, N},
    {"stale_stack", stale_stack, N},
    {"fiber_mapped", fiber_mapped, 0},
    {"fiber_on_heap", fiber_on_heap, 0},
    {"in_on_exit", in_on_exit, 0},
    {"in_epoll", in_epoll, 0},
    {"in_timer", in_timer, 0},
    {"in_jump_buffer", in_jump_buffer, 0},
    {"in_munmap", in_munmap, 0},
    {"of_libraries", of_libraries, 0},
    {"in_made_code", in_made_code, 0},
    {"xor_list", xor_list, 0},
};
#define NCASES (sizeof(cases) / sizeof(cases[0]))

/* Clears the stack below the stack pointer, where finished calls left addresses. */
static __attribute__((noinline)) void clear_stack(void)
{
	volatile char room[4096];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

#ifdef WITH_LSAN
int __lsan_do_recoverable_leak_check(void);
#endif

int main(int argc, char **argv)
{
	for (size_t i = 0; i < NCASES; i++) {
		if (argc < 2 || !strcmp(argv[1], "list")) {
			printf("%s %d\n", cases[i].name, cases[i].leaks);
		} else if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			clear_stack();
			printf("expect %d\nready\n", cases[i].leaks);
			fflush(stdout);
#ifdef WITH_LSAN
			_exit(__lsan_do_recoverable_leak_check() ? 23 : 0);
#endif
			for (;;)
				pause();
		}
	}
	return 0;
}
