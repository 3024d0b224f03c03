/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One thread checks what only a debugger can change: every register, the flags, the red zone, the
 * signal mask and the alternate stack.
 *
 *	registers spin		runs with a pattern in all registers
 *	registers sleep		sleeps 20 ms at a time; no call may fail or end early
 *
 * At SIGTERM prints "ok ROUNDS" and exits 0.  If something changed, prints it and exits 1.
 */
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SPINS  20000000
#define MARK   0x0123456789abcdefull
#define VECTOR 16

struct seen {
	uint64_t gpr[14]; /* rax rbx rdx rsi rdi rbp r8-r15 */
	uint64_t flags;
	uint64_t red_zone[16];
	uint64_t vector[VECTOR][4]; /* 32 bytes each */
};

void spin(struct seen *seen, long spins, const uint64_t vector[VECTOR][4], long avx);

/* lea and jrcxz leave the flags alone. */
__asm__(".text\n.type spin, @function\nspin:\n"
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\npush %rdi\npush %rcx\n"
	"mov %rsi, %r10\n"
	"test %rcx, %rcx\nje 1f\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvmovups \\n*32(%rdx), %ymm\\n\n.endr\n"
	"jmp 2f\n1:\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nmovups \\n*32(%rdx), %xmm\\n\n.endr\n"
	"2:\nmov %r10, %rcx\n"
	"movabs $0x0123456789abcdef, %rax\n"
	".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\nmov %rax, -8*\\n(%rsp)\n.endr\n"
	".irp r, rbx,rdx,rsi,rdi,rbp,r8,r9,r10,r11,r12,r13,r14,r15\nlea 1(%rax), %rax\n"
	"mov %rax, %\\r\n.endr\n"
	"xor %eax, %eax\nstc\nstd\n"
	"3: jrcxz 4f\nlea -1(%rcx), %rcx\njmp 3b\n4:\n"
	/* The red zone is checked before a push overwrites it. */
	"mov 8(%rsp), %rcx\nmov %rax, 0(%rcx)\n"
	".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\nmov -8*\\n(%rsp), %rax\n"
	"mov %rax, 120+8*\\n-8(%rcx)\n.endr\n"
	"pushfq\npop %rax\nmov %rax, 112(%rcx)\ncld\n"
	"mov %rbx, 8(%rcx)\nmov %rdx, 16(%rcx)\nmov %rsi, 24(%rcx)\nmov %rdi, 32(%rcx)\n"
	"mov %rbp, 40(%rcx)\nmov %r8, 48(%rcx)\nmov %r9, 56(%rcx)\nmov %r10, 64(%rcx)\n"
	"mov %r11, 72(%rcx)\nmov %r12, 80(%rcx)\nmov %r13, 88(%rcx)\nmov %r14, 96(%rcx)\n"
	"mov %r15, 104(%rcx)\n"
	"pop %rax\npop %rdi\ntest %rax, %rax\nje 5f\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvmovups %ymm\\n, 248+\\n*32(%rdi)\n.endr\n"
	"vzeroupper\njmp 6f\n5:\n"
	".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nmovups %xmm\\n, 248+\\n*32(%rdi)\n.endr\n"
	"6:\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"
	".size spin, . - spin\n");

_Static_assert(sizeof(struct seen) == 248 + VECTOR * 32, "the offsets above");

static volatile sig_atomic_t stop;
static stack_t alternate;
static sigset_t mask;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void wrong(const char *what, unsigned long long value)
{
	dprintf(2, "wrong: %s %#llx\n", what, value);
	_exit(1);
}

static void check_thread(void)
{
	stack_t now;
	sigset_t set;

	sigaltstack(NULL, &now);
	if (now.ss_sp != alternate.ss_sp || now.ss_size != alternate.ss_size || now.ss_flags)
		wrong("alternate stack", (unsigned long long)now.ss_sp);
	sigprocmask(SIG_BLOCK, NULL, &set);
	if (memcmp(&set, &mask, 8))
		wrong("signal mask", 0);
}

static void spin_once(void)
{
	long avx = __builtin_cpu_supports("avx") != 0;
	uint64_t vector[VECTOR][4];
	struct seen s = {0};

	for (int i = 0; i < VECTOR; i++) {
		for (int k = 0; k < 4; k++)
			vector[i][k] = !avx && k > 1 ? 0 : MARK * (uint64_t)(i * 4 + k + 3);
	}
	spin(&s, SPINS, vector, avx);
	for (uint64_t i = 1; i < 14; i++) {
		if (s.gpr[i] != MARK + i)
			wrong("register", s.gpr[i]);
	}
	if (s.gpr[0])
		wrong("rax", s.gpr[0]);
	if ((s.flags & 0xcd5) != 0x445) /* CF, PF and ZF of xor, DF */
		wrong("flags", s.flags);
	for (int i = 0; i < 16; i++) {
		if (s.red_zone[i] != MARK)
			wrong("red zone", s.red_zone[i]);
	}
	for (int i = 0; i < VECTOR * 4; i++) {
		if (s.vector[i / 4][i % 4] != vector[i / 4][i % 4])
			wrong(i % 4 < 2 ? "xmm register" : "upper half of a ymm register",
			      s.vector[i / 4][i % 4]);
	}
}

static void sleep_once(void)
{
	struct timespec t = {0, 20000000}, a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	if (nanosleep(&t, NULL) && !stop)
		wrong("nanosleep", 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	if ((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec < 20000000 && !stop)
		wrong("time slept", (unsigned long long)(b.tv_nsec - a.tv_nsec));
}

int main(int argc, char **argv)
{
	long rounds = 0;

	alternate = (stack_t){.ss_sp = malloc(65536), .ss_size = 65536};
	sigaltstack(&alternate, NULL);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	signal(SIGTERM, on_term);
	alarm(600); /* end even if the test has died */
	for (; !stop; rounds++) {
		if (argc > 1 && !strcmp(argv[1], "sleep"))
			sleep_once();
		else
			spin_once();
		check_thread();
	}
	printf("ok %ld\n", rounds);
	return 0;
}
