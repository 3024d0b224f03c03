/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * C++ code calls C++ code through functions (links) without unwind tables.  Some keep a frame
 * pointer, others use its register for something else.  Copies of the same functions are in memory
 * that the program made executable.  Each path allocates blocks of another size, in a loop until
 * SIGTERM. Prints a line for each path: the size and the functions of the path, outermost first.
 */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__

typedef void next_fn(void *);
typedef void link_fn(next_fn *next, void *arg);

/* A function without call frame information, since it has no .cfi directives. */
#define LINK(name, before, after)                                                                  \
	asm(".text\n.p2align 4\n.type " #name ", @function\n.globl " #name "\n" #name ":\n" before \
	    "mov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\n" after "ret\n" #name                     \
	    "_end:\n.size " #name ", . - " #name "\n.globl " #name "_end\n");                      \
	extern "C" link_fn name;                                                                   \
	extern "C" const char name##_end[];

LINK(framed,
     "push %rbp\nmov %rsp, %rbp\npush %rbx\nsub $24, %rsp\nmovq $1, (%rsp)\n"
     "movq $2, 8(%rsp)\nmovq $3, 16(%rsp)\n",
     "add $24, %rsp\npop %rbx\npop %rbp\n")
/* Leaves the caller's frame pointer in the register. */
LINK(kept, "sub $8, %rsp\n", "add $8, %rsp\n")
/* Saves the caller's frame pointer where a function with a frame pointer does, but keeps it. */
LINK(saved, "push %rbp\n", "pop %rbp\n")
LINK(garbage, "push %rbp\nmovabs $0x123456789abc, %rbp\n", "pop %rbp\n")
/* The register points to what looks like a frame, except that its return address is not code. */
LINK(onstack,
     "push %rbp\nsub $48, %rsp\nlea 16(%rsp), %rbp\nmovq $7, (%rsp)\nmovq $7, 8(%rsp)\n"
     "lea 256(%rsp), %rdx\nmov %rdx, (%rbp)\nmovq $0x1234, 8(%rbp)\n",
     "add $48, %rsp\npop %rbp\n")
/* As onstack, but the return address is one of code.  It is not that of an instruction after a
 * call. */
LINK(decoy,
     "push %rbp\nsub $48, %rsp\nlea 16(%rsp), %rbp\nmovq $7, (%rsp)\nmovq $7, 8(%rsp)\n"
     "lea 256(%rsp), %rdx\nmov %rdx, (%rbp)\nlea 9f(%rip), %rdx\nmov %rdx, 8(%rbp)\n9:\n",
     "add $48, %rsp\npop %rbp\n")

static const struct {
	const char *name;
	link_fn *text;
	const char *end;
} links[] = {{"framed", framed, framed_end},	{"kept", kept, kept_end},
	     {"saved", saved, saved_end},	{"garbage", garbage, garbage_end},
	     {"onstack", onstack, onstack_end}, {"decoy", decoy, decoy_end}};
static const int nlinks = sizeof(links) / sizeof(links[0]);

static volatile sig_atomic_t done;

static void on_term(int)
{
	done = 1;
}

struct path {
	size_t size;
	link_fn *outer, *inner;
};

__attribute__((noipa)) static void allocate(void *arg)
{
	void *volatile p = malloc(static_cast<path *>(arg)->size);

	free(p);
}

__attribute__((noipa)) static void between(void *arg)
{
	static_cast<path *>(arg)->inner(allocate, arg);
	asm volatile("");
}

__attribute__((noipa)) static void begin(path *p)
{
	p->outer(between, p);
	asm volatile("");
}

/* Copies the link to executable memory at @to. */
static link_fn *copy(int i, char *to)
{
	memcpy(to, reinterpret_cast<const void *>(links[i].text),
	       links[i].end - reinterpret_cast<const char *>(links[i].text));
	return reinterpret_cast<link_fn *>(to);
}

int main()
{
	char *code = static_cast<char *>(mmap(nullptr, 65536, PROT_READ | PROT_WRITE | PROT_EXEC,
					      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	path paths[2 * nlinks];
	int n = 0;

	if (code == MAP_FAILED)
		return 1;
	signal(SIGTERM, on_term);
	for (int i = 0; i < nlinks; i++) {
		paths[n] = {20000u + n, framed, links[i].text};
		printf("%zu framed between %s allocate\n", paths[n++].size, links[i].name);
		paths[n] = {20000u + n, copy(0, code), copy(i, code + 4096 * (i + 1))};
		printf("%zu - between -%s allocate\n", paths[n++].size, links[i].name);
	}
	fflush(stdout);
	while (!done) {
		for (int i = 0; i < n; i++)
			begin(&paths[i]);
		usleep(1000);
	}
	return 0;
}

#else

int main()
{
	puts("no code for this processor");
}

#endif
