/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stream/wire.h"

#include <errno.h>
#include <nettle/memops.h>
#include <string.h>
#include <sys/random.h>

#define VERSION	 1u
#define NONCE	 32u
#define NONCE_AT (WIRE_HELLO - NONCE)

static void put_le(uint8_t *p, uint64_t v, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static uint64_t get_le(const uint8_t *p, unsigned int bytes)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static void put_head(enum wire_role role, uint8_t hello[WIRE_HELLO])
{
	memcpy(hello, role == WIRE_SENDER ? "MEMPROF>" : "MEMPROF<", 8);
	put_le(hello + 8, VERSION, 4);
	put_le(hello + 12, 0, 4);
}

int wire_hello(enum wire_role role, uint8_t hello[WIRE_HELLO])
{
	put_head(role, hello);
	return getrandom(hello + NONCE_AT, NONCE, 0) == (ssize_t)NONCE ? 0 : -EIO;
}

bool wire_hello_ok(enum wire_role role, const uint8_t hello[WIRE_HELLO])
{
	uint8_t expected[WIRE_HELLO];

	put_head(role, expected);
	return !memcmp(hello, expected, NONCE_AT);
}

bool wire_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
	return memeql_sec(a, b, n);
}

/* HMAC(token, label hellos) */
static void derive(const struct token *token, const char *label,
		   const uint8_t hellos[2 * WIRE_HELLO], uint8_t out[SHA256_DIGEST_SIZE])
{
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, token->n, token->bytes);
	hmac_sha256_update(&h, strlen(label), (const uint8_t *)label);
	hmac_sha256_update(&h, 2 * (size_t)WIRE_HELLO, hellos);
	hmac_sha256_digest(&h, SHA256_DIGEST_SIZE, out);
}

void wire_proof(const struct token *token, enum wire_role role,
		const uint8_t hellos[2 * WIRE_HELLO], uint8_t proof[WIRE_PROOF])
{
	derive(token,
	       role == WIRE_SENDER ? "memprof stream 1: sender" : "memprof stream 1: receiver",
	       hellos, proof);
}

void wire_direction_begin(struct wire_direction *d, const struct token *token, enum wire_role role,
			  const uint8_t hellos[2 * WIRE_HELLO])
{
	uint8_t key[SHA256_DIGEST_SIZE];

	derive(token, role == WIRE_SENDER ? "memprof stream 1: data" : "memprof stream 1: answers",
	       hellos, key);
	hmac_sha256_set_key(&d->code, sizeof(key), key);
	d->number = 0;
}

static void code_of(struct wire_direction *d, const uint8_t *frame, size_t n,
		    uint8_t code[WIRE_CODE])
{
	hmac_sha256_update(&d->code, n, frame);
	hmac_sha256_digest(&d->code, WIRE_CODE, code); /* and begins anew with the same key */
}

size_t wire_put(struct wire_direction *d, uint8_t *out, enum wire_type type, uint64_t offset,
		const void *payload, size_t n)
{
	put_le(out, type, 4);
	put_le(out + 4, n, 4);
	put_le(out + 8, d->number++, 4);
	put_le(out + 12, offset, 8);
	if (n)
		memcpy(out + WIRE_HEAD, payload, n);
	code_of(d, out, WIRE_HEAD + n, out + WIRE_HEAD + n);
	return WIRE_HEAD + n + WIRE_CODE;
}

int wire_get(struct wire_direction *d, const uint8_t *in, size_t n, struct wire_frame *f)
{
	uint8_t code[WIRE_CODE];

	*f = (struct wire_frame){0};
	if (n < WIRE_HEAD)
		return 0;
	f->type = (uint32_t)get_le(in, 4);
	f->length = (uint32_t)get_le(in + 4, 4);
	f->number = (uint32_t)get_le(in + 8, 4);
	f->offset = get_le(in + 12, 8);
	f->payload = in + WIRE_HEAD;
	if (f->length > WIRE_PAYLOAD || f->number != d->number)
		return -EPROTO;
	if (n < WIRE_HEAD + f->length + WIRE_CODE)
		return 0;
	code_of(d, in, WIRE_HEAD + f->length, code);
	if (!wire_equal(code, f->payload + f->length, WIRE_CODE))
		return -EPROTO;
	d->number++;
	return (int)(WIRE_HEAD + f->length + WIRE_CODE);
}
