/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leaks/types/shape.h"

#define LEAST 4 /* links */

/* Does a slot lead to each block at most once? */
static bool is_single(const struct shape_slot *s)
{
	return !s->off && s->links >= LEAST && s->repeated * 100ull <= s->links;
}

/* Does slot @q of the next block lead back? */
static bool leads_back(const struct shape_slot *p, uint8_t q)
{
	return p->inverse[q] * 100ull >= p->links * 95ull;
}

/* Do some of the blocks that a slot leads to lead on? */
static bool leads_on(const struct shape_nodes *n, uint8_t p)
{
	uint64_t onward = 0;

	for (uint8_t q = 0; q < n->n; q++)
		onward += is_single(&n->slot[q]) && !leads_back(&n->slot[p], q)
			      ? n->slot[p].onward[q]
			      : 0;
	return onward * 10 >= n->slot[p].links;
}

/* Are both slots children of one tree?  Some blocks have both, and no block is reached by both.  What
 * leads nowhere is what a node refers to, not another node. */
static bool are_children(const struct shape_nodes *n, uint8_t p, uint8_t q)
{
	const struct shape_slot *a = &n->slot[p], *b = &n->slot[q];
	const uint32_t fewer = a->links < b->links ? a->links : b->links;

	return a->both[q] * 10ull >= fewer && a->common[q] * 100ull <= a->links + b->links &&
	       !leads_back(a, q) && !leads_back(b, p) && leads_on(n, p) && leads_on(n, q);
}

/* Do the blocks that a slot leads to have the other slots about as often as those that lead to them?
 * If not, they are of another type: values of entries, for example. */
static bool is_alike(const struct shape_nodes *n, uint8_t p)
{
	const struct shape_slot *s = &n->slot[p];

	for (uint8_t q = 0; q < n->n; q++) {
		if (q != p && s->both[q] >= 16 && s->both[q] * 20ull >= s->links &&
		    s->onward[q] * 4ull < s->both[q])
			return false;
	}
	/* Some of them lead on, too. */
	return s->onward[p] * 100ull >= s->links;
}

static void find_trees(struct shape_nodes *n)
{
	for (uint8_t p = 0; p < n->n; p++) {
		if (n->slot[p].role || !is_single(&n->slot[p]))
			continue;
		for (uint8_t q = (uint8_t)(p + 1); q < n->n; q++) {
			bool all = !n->slot[q].role && is_single(&n->slot[q]);

			for (uint8_t c = 0; c < q && all; c++) {
				if (c == p ||
				    (n->slot[c].role == ROLE_CHILD && n->slot[c].partner == p))
					all = are_children(n, c, q);
			}
			if (!all)
				continue;
			n->slot[p].role = n->slot[q].role = ROLE_CHILD;
			n->slot[p].partner = n->slot[q].partner = p;
		}
	}
	for (uint8_t p = 0; p < n->n; p++) {
		for (uint8_t q = 0; q < n->n && n->slot[p].role == ROLE_CHILD; q++) {
			if (!n->slot[q].role && leads_back(&n->slot[p], q))
				n->slot[q].role = ROLE_PARENT;
		}
	}
}

static void find_pairs(struct shape_nodes *n)
{
	for (uint8_t p = 0; p < n->n; p++) {
		for (uint8_t q = 0; q < n->n && !n->slot[p].role && is_single(&n->slot[p]); q++) {
			struct shape_slot *next = &n->slot[p], *back = &n->slot[q];

			if (p == q || !leads_back(next, q) ||
			    (back->role && back->role != ROLE_PREVIOUS &&
			     back->role != ROLE_PARENT))
				continue;
			/* Either can be the next one: in most structures it is the first. */
			if (!back->role && is_single(back) && leads_back(back, p) &&
			    back->offset < next->offset) {
				back->role = ROLE_NEXT;
				back->partner = p;
				next->role = ROLE_PREVIOUS;
				continue;
			}
			next->role = ROLE_NEXT;
			next->partner = q;
			if (back->role)
				continue;
			/* Other blocks of the same size can have single links there. */
			back->role =
			    !is_single(back) || leads_back(back, p) ? ROLE_PREVIOUS : ROLE_SINGLE;
			back->rest = back->role == ROLE_SINGLE;
			back->partner = p;
		}
	}
}

void shape_roles(struct shapes *s)
{
	vec_for_each (&s->kinds, k) {
		struct shape_nodes *n = k->nodes;

		if (!n)
			continue;
		find_trees(n);
		find_pairs(n);
		for (uint8_t p = 0; p < n->n; p++) {
			if (!n->slot[p].role && is_single(&n->slot[p]) && is_alike(n, p))
				n->slot[p].role = ROLE_SINGLE;
		}
	}
}
