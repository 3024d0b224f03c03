/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A recursive-descent parser that builds trees and frees them: parser DEPTH SECONDS.  The stack
 * grows and shrinks by a few frames above DEPTH frames that stay. */
#include <string.h>
#include "measure.h"

#define TEXT 4000

struct node {
	struct node *left, *right;
	char op;
	char text[];
};

static char text[TEXT + 1];
static const char *at;
static long made;

static struct node *node_new(char op, struct node *left, struct node *right, size_t more)
{
	struct node *n = malloc(sizeof(*n) + more);

	n->op = op;
	n->left = left;
	n->right = right;
	made++;
	return n;
}

static struct node *sum(void);

__attribute__((noinline)) static struct node *atom(void)
{
	struct node *n;
	size_t len = 0;

	if (*at == '(') {
		at++;
		n = sum();
		at += *at == ')';
		return n;
	}
	while (at[len] >= 'a' && at[len] <= 'z')
		len++;
	n = node_new('v', NULL, NULL, len + 1);
	memcpy(n->text, at, len);
	n->text[len] = 0;
	at += len;
	return n;
}

__attribute__((noinline)) static struct node *product(void)
{
	struct node *n = atom();

	while (*at == '*') {
		at++;
		n = node_new('*', n, atom(), 1);
	}
	return n;
}

__attribute__((noinline)) static struct node *sum(void)
{
	struct node *n = product();

	while (*at == '+') {
		at++;
		n = node_new('+', n, product(), 1);
	}
	return n;
}

static void tree_free(struct node *n)
{
	if (!n)
		return;
	tree_free(n->left);
	tree_free(n->right);
	free(n);
}

/* Makes a random text of the grammar, at most 12 parentheses deep. */
static void make_text(void)
{
	unsigned int x = 7, open = 0, i = 0;

	while (i < TEXT - 64) {
		x = x * 1664525 + 1013904223;
		while (open < 12 && x >> 30 == 0) {
			text[i++] = '(';
			open++;
			x = x * 1664525 + 1013904223;
		}
		for (unsigned int k = 0; k <= (x >> 20) % 9; k++)
			text[i++] = (char)('a' + k);
		while (open && x >> 16 & 1) {
			text[i++] = ')';
			open--;
			x = x * 1664525 + 1013904223;
		}
		text[i++] = x >> 28 < 8 ? '*' : '+';
	}
	text[i++] = 'z';
	while (open--)
		text[i++] = ')';
}

static long parse_once(void *ctx)
{
	struct node *n;

	(void)ctx;
	at = text;
	made = 0;
	n = sum();
	tree_free(n);
	return made;
}

__attribute__((noinline)) static struct measure descend(int depth, double seconds)
{
	struct measure m =
	    depth > 1 ? descend(depth - 1, seconds) : measure(parse_once, NULL, seconds);

	__asm__ volatile("" : "+m"(m));
	return m;
}

int main(int argc, char **argv)
{
	struct measure m;

	make_text();
	m = descend(argc > 1 ? atoi(argv[1]) : 30, argc > 2 ? atof(argv[2]) : 1);
	print_measures(&m, 1);
	return 0;
}
