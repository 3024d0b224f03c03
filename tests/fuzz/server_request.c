/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Requests to memprof server.  Lines of the input: the request's target, then the headers that access
 * depends on (Host, Origin, Authorization, Sec-Fetch-Site, Sec-Fetch-Mode, the token's cookie).
 */
#include "fuzz.h"
#include "server/access.h"
#include "server/call.h"
#include "server/endpoint.h"
#include "server/recordings.h"
#include "server/status.h"
#include "server/target.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct recording files[] = {
    {.path = (char *)"/a", .id = "00112233445566778899aabbccddeeff"},
    {.path = (char *)"/b", .id = "ffeeddccbbaa99887766554433221100"}};
static const struct recordings recordings = {{files, 2, 2}};
static const char *const hosts[] = {"box.example", NULL}, *const origins[] = {"https://a.b", NULL};

/* All values that the parser accepted can be read. */
static void check_values(const struct call *c)
{
	const struct parameter *p = c->endpoint->own;

	for (uint32_t i = 0; p && p[i].name; i++) {
		if (call_text(c, p[i].name) != c->value[i])
			abort();
		if (p[i].kind == PARAMETER_NUMBER && p[i].most && c->value[i] &&
		    call_number(c, p[i].name, UINT64_MAX) > p[i].most)
			abort();
		if (p[i].kind == PARAMETER_WORD)
			(void)call_word(c, p[i].name);
	}
	if (c->recording >= recordings.at.n || !c->filter_text)
		abort();
}

static void fuzz_call(const struct target *t)
{
	struct mp_err err = {0};
	struct call c, again;
	unsigned int status = call_parse(&recordings, t->path, t->query, &c, &err);

	if (status != HTTP_OK) {
		if (status < 400 || !err.what[0])
			abort(); /* refused without a reason */
		return;
	}
	check_values(&c);
	/* The worker parses it once more. */
	if (call_parse(&recordings, t->path, t->query, &again, &err) != HTTP_OK ||
	    strcmp(c.filter_text, again.filter_text) != 0)
		abort();
	call_free(&again);
	call_free(&c);
}

static const char *line(char **text)
{
	char *l = *text ? strsep(text, "\n") : NULL;

	return l && *l ? l : NULL;
}

static void fuzz_access(const struct access_rules *rules, const struct access_request *r)
{
	const char *why = NULL;
	unsigned int status = access_check(rules, r, &why);

	if ((status == HTTP_OK) != !why)
		abort();
	if (status == HTTP_OK && rules->token && !(r->cookie && !strcmp(r->cookie, TOKEN)) &&
	    !(r->authorization && strstr(r->authorization, TOKEN)))
		abort(); /* let in without the token */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct access_rules open_rules = {NULL, hosts, origins}, closed = {TOKEN, hosts, origins};
	char *text = input_text(data, size), *at = text;
	const char *uri = line(&at);
	struct access_request r = {0};
	struct target t;

	r.host = line(&at);
	r.origin = line(&at);
	r.authorization = line(&at);
	r.site = line(&at);
	r.mode = line(&at);
	r.cookie = line(&at);
	if (!target_split(uri ? uri : "", &t)) {
		fuzz_call(&t);
		if (t.host)
			r.host = t.host;
		fuzz_access(&open_rules, &r);
		fuzz_access(&closed, &r);
		target_free(&t);
	}
	free(text);
	return 0;
}
