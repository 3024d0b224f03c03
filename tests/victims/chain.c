/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes a list of 10,000 blocks, each referenced only by the block before.  Prints the address of
 * the middle block and waits for the end of stdin. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NODES 10000

struct node {
	struct node *next;
	char payload[40];
};
static struct node *first;

int main(void)
{
	struct node **to = &first, *middle = NULL;
	char c;

	for (int i = 0; i < NODES; i++) {
		*to = calloc(1, sizeof(**to));
		if (i == NODES / 2)
			middle = *to;
		to = &(*to)->next;
	}
	printf("%p\n", (void *)middle);
	fflush(stdout);
	return (int)read(0, &c, 1);
}
