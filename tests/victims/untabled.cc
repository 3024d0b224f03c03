/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * C++ that calls C++ through functions without unwind tables: some keep a frame pointer, others use
 * the register for something else.  The same functions lie in the program's text and, copied, in
 * memory that it made executable.  Every path allocates blocks of its own size, again and again;
 * ends by SIGTERM.  Prints a line for each path: its size and what it leads through, from outside.
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

/* No call frame information: none is asked for. */
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
/* The register has the caller's frame pointer. */
LINK(kept, "sub $8, %rsp\n", "add $8, %rsp\n")
/* The caller's is saved where a frame pointer's function would, but not replaced. */
LINK(saved, "push %rbp\n", "pop %rbp\n")
LINK(garbage, "push %rbp\nmovabs $0x123456789abc, %rbp\n", "pop %rbp\n")
/* It points to what looks like a frame, but for the return address ... */
LINK(onstack,
     "push %rbp\nsub $48, %rsp\nlea 16(%rsp), %rbp\nmovq $7, (%rsp)\nmovq $7, 8(%rsp)\n"
     "lea 256(%rsp), %rdx\nmov %rdx, (%rbp)\nmovq $0x1234, 8(%rbp)\n",
     "add $48, %rsp\npop %rbp\n")
/* ... and where that is an address of code, but not behind a call. */
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

/* A copy of the link in executable memory at @to. */
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
