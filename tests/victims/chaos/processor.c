/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the state of the processor: registers, floating point, restartable sequences and clocks.
 */
#include <fenv.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "chaos.h"
#ifdef __has_include
#if __has_include(<sys/rseq.h>) && defined(__x86_64__)
#include "../count_once.h"
#define WITH_RSEQ
#endif
#endif

#if defined(__x86_64__)

/* Contents of all vector registers, which are loaded, kept for some milliseconds, and stored. */
struct vectors {
	uint64_t v[16][4];
};
struct numbers {
	uint64_t r[15], flags;
};

#define EACH_VECTOR(M)                                                                             \
	M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)

__attribute__((target("avx"), noinline)) static void hold_ymm(const struct vectors *in,
							      struct vectors *out, uint64_t turns)
{
#define LOAD(n)	 "vmovdqu " #n "*32(%[in]), %%ymm" #n "\n\t"
#define STORE(n) "vmovdqu %%ymm" #n ", " #n "*32(%[out])\n\t"
	__asm__ volatile(EACH_VECTOR(LOAD) "1: pause\n\tdec %[turns]\n\tjnz 1b\n\t" EACH_VECTOR(
			     STORE) "vzeroupper\n\t"
			 : [turns] "+r"(turns)
			 : [in] "r"(in), [out] "r"(out)
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			   "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			   "xmm15");
#undef LOAD
#undef STORE
}

static void hold_xmm(const struct vectors *in, struct vectors *out, uint64_t turns)
{
#define LOAD(n)	 "movdqu " #n "*32(%[in]), %%xmm" #n "\n\t"
#define STORE(n) "movdqu %%xmm" #n ", " #n "*32(%[out])\n\t"
	__asm__ volatile(
	    EACH_VECTOR(LOAD) "1: pause\n\tdec %[turns]\n\tjnz 1b\n\t" EACH_VECTOR(STORE)
	    : [turns] "+r"(turns)
	    : [in] "r"(in), [out] "r"(out)
	    : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
	      "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/*
 * Keeps known numbers in all general registers except rsp, rax and rcx, the carry and direction
 * flags set, and words at both ends of the red zone, for @turns turns of a loop that changes no
 * flag.
 */
void chaos_hold(const struct numbers *in, struct numbers *out, uint64_t turns);
__asm__(".pushsection .text\n"
	".type chaos_hold, @function\n"
	"chaos_hold:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rbx\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r12\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r13\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r14\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %r15\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov %rdx, %rcx\n"
	"	mov %rdi, %rax\n"
	"	mov 0(%rax), %rbx\n"
	"	mov 8(%rax), %rdx\n"
	"	mov 16(%rax), %rsi\n"
	"	mov 24(%rax), %rdi\n"
	"	mov 32(%rax), %rbp\n"
	"	mov 40(%rax), %r8\n"
	"	mov 48(%rax), %r9\n"
	"	mov 56(%rax), %r10\n"
	"	mov 64(%rax), %r11\n"
	"	mov 72(%rax), %r12\n"
	"	mov 80(%rax), %r13\n"
	"	mov 88(%rax), %r14\n"
	"	mov 96(%rax), %r15\n"
	"	mov %rbx, -8(%rsp)\n"
	"	mov %r15, -128(%rsp)\n"
	"	std\n"
	"	stc\n"
	"1:	pause\n"
	"	lea -1(%rcx), %rcx\n"
	"	jrcxz 2f\n"
	"	jmp 1b\n"
	"2:	mov (%rsp), %rax\n"
	"	mov %rbx, 0(%rax)\n"
	"	mov %rdx, 8(%rax)\n"
	"	mov %rsi, 16(%rax)\n"
	"	mov %rdi, 24(%rax)\n"
	"	mov %rbp, 32(%rax)\n"
	"	mov %r8, 40(%rax)\n"
	"	mov %r9, 48(%rax)\n"
	"	mov %r10, 56(%rax)\n"
	"	mov %r11, 64(%rax)\n"
	"	mov %r12, 72(%rax)\n"
	"	mov %r13, 80(%rax)\n"
	"	mov %r14, 88(%rax)\n"
	"	mov %r15, 96(%rax)\n"
	"	mov -8(%rsp), %rdx\n"
	"	mov %rdx, 104(%rax)\n"
	"	mov -128(%rsp), %rdx\n"
	"	mov %rdx, 112(%rax)\n"
	"	pushf\n"
	"	pop %rdx\n"
	"	mov %rdx, 120(%rax)\n"
	"	cld\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %r15\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %r14\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %r13\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %r12\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rbx\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	pop %rbp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".popsection\n");

#define FLAGS 0x401 /* carry, direction */
#define TURNS 20000 /* about a millisecond */

static void registers_round(struct actor *a)
{
	struct vectors in, out;
	struct numbers n, m = {0};

	for (int i = 0; i < 64; i++)
		in.v[i / 4][i % 4] = 0x0102030405060708ull * (unsigned)(i + 1);
	for (int i = 0; i < 13; i++)
		n.r[i] = 0x1112131415161718ull * (unsigned)(i + 1);
	n.r[13] = n.r[0];
	n.r[14] = n.r[12];
	chaos_hold(&n, &m, TURNS);
	for (int i = 0; i < 15; i++)
		must(a, m.r[i] == n.r[i], "%s %d: expected %#llx, got %#llx",
		     i < 13 ? "register" : "red zone", i, (long long)n.r[i], (long long)m.r[i]);
	must(a, (m.flags & FLAGS) == FLAGS, "flags: expected carry and direction, got %#llx",
	     (long long)m.flags);
	out = in;
	memset(&out, 0, sizeof(out));
	if (__builtin_cpu_supports("avx"))
		hold_ymm(&in, &out, TURNS);
	else
		hold_xmm(&in, &out, TURNS);
	for (int i = 0; i < 64; i++)
		must(a,
		     (i % 4 > 1 && !__builtin_cpu_supports("avx")) ||
			 in.v[i / 4][i % 4] == out.v[i / 4][i % 4],
		     "vector register %d: expected %#llx, got %#llx", i / 4,
		     (long long)in.v[i / 4][i % 4], (long long)out.v[i / 4][i % 4]);
	pause_us(3000);
}
#else
static void registers_round(struct actor *a)
{
	skip(a, "written for x86-64 only");
}
#endif

/* Checks the rounding mode, and a sum in which each step is exact. */
static void floats_round(struct actor *a)
{
	static const int modes[] = {FE_TONEAREST,
#ifdef FE_UPWARD
				    FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO
#endif
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		volatile double sum = 0, third, one = 1, three = 3;

		fesetround(modes[i]);
		third = one / three;
		feclearexcept(FE_ALL_EXCEPT);
		for (int n = 1; n <= 20000; n++)
			sum += n;
		must(a, sum == 200010000, "sum: expected 200010000, got %f", sum);
		pause_us(500);
		must(a, fegetround() == modes[i] && third == one / three,
		     "rounding: expected mode %d, got %d", modes[i], fegetround());
	}
	fesetround(FE_TONEAREST);
}

/* Checks that time does not go back, by the vDSO and by system calls. */
static void clocks_round(struct actor *a)
{
	struct timespec before, t;

	clock_gettime(CLOCK_MONOTONIC, &before);
	for (int i = 0; i < 2000; i++) {
		if (i % 4)
			clock_gettime(CLOCK_MONOTONIC, &t);
#if __SIZEOF_POINTER__ == 8
		else
			syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
#endif
		must(a,
		     t.tv_sec > before.tv_sec ||
			 (t.tv_sec == before.tv_sec && t.tv_nsec >= before.tv_nsec),
		     "clock: expected not to go back, from %ld.%09ld to %ld.%09ld",
		     (long)before.tv_sec, before.tv_nsec, (long)t.tv_sec, t.tv_nsec);
		before = t;
	}
	pause_us(2000);
}

#ifdef WITH_RSEQ
#define CPUS	1024
#define THREADS 3

struct counting {
	long done;
	long (*counter)[8];
};

static void *count(void *arg)
{
	struct rseq *rs = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	struct counting *c = arg;

	for (int i = 0; i < 10000; i++)
		c->done += count_once(rs, c->counter);
	return NULL;
}

static void rseq_round(struct actor *a)
{
	static long counter[CPUS][8] __attribute__((aligned(64)));
	struct counting c[THREADS];
	long sum = 0, counted = 0;
	pthread_t th[THREADS];

	if (!__rseq_size) {
		skip(a, "the C library has registered none");
		return;
	}
	memset(counter, 0, sizeof(counter));
	for (int i = 0; i < THREADS; i++) {
		c[i] = (struct counting){0, counter};
		th[i] = begin(count, &c[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(th[i], NULL);
		sum += c[i].done;
	}
	for (int i = 0; i < CPUS; i++)
		counted += counter[i][0];
	must(a, sum == counted, "rseq: expected a count of %ld, got %ld", sum, counted);
	pause_us(30000);
}
#else
static void rseq_round(struct actor *a)
{
	skip(a, "written for x86-64 only");
}
#endif

struct actor processor[] = {
    {.name = "registers",
     .round = registers_round,
     .guaranteed = "general and vector registers, flags and the red zone keep what they hold"},
    {.name = "floats",
     .round = floats_round,
     .guaranteed = "sums are right, the rounding mode stays"},
    {.name = "clocks", .round = clocks_round, .guaranteed = "CLOCK_MONOTONIC does not go back"},
    {.name = "rseq",
     .round = rseq_round,
     .alone = true,
     .guaranteed =
	 "restartable sequences are aborted where they are interrupted: no count is lost"},
    {0}};
