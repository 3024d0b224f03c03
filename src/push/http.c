/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "push/http.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONNECT_MS 10000l
#define TOTAL_MS   60000l
#define HTTP_ONLY  3l /* CURLPROTO_HTTP | CURLPROTO_HTTPS */

/* As in curl/curl.h, whose package is thus not needed to build memprof; libcurl promises that they do not change. */
enum option {
	OPT_WRITEDATA = 10001,
	OPT_URL = 10002,
	OPT_ERRORBUFFER = 10010,
	OPT_POSTFIELDS = 10015,
	OPT_USERAGENT = 10018,
	OPT_HTTPHEADER = 10023,
	OPT_HEADERDATA = 10029,
	OPT_XFERINFODATA = 10057,
	OPT_WRITEFUNCTION = 20011,
	OPT_HEADERFUNCTION = 20079,
	OPT_XFERINFOFUNCTION = 20219,
	OPT_POSTFIELDSIZE_LARGE = 30120,
	OPT_NOPROGRESS = 43,
	OPT_NOSIGNAL = 99,
	OPT_TIMEOUT_MS = 155,
	OPT_CONNECTTIMEOUT_MS = 156,
	OPT_PROTOCOLS = 181,
};
#define INFO_RESPONSE_CODE 0x200002
#define GLOBAL_DEFAULT	   3l
#define E_OK		   0
#define E_ABORTED	   42
#define ERROR_SIZE	   256

typedef void CURL;
struct curl_slist;
static struct library {
	int (*global_init)(long flags);
	CURL *(*init)(void);
	void (*cleanup)(CURL *c);
	int (*setopt)(CURL *c, int option, ...);
	int (*perform)(CURL *c);
	int (*getinfo)(CURL *c, int info, ...);
	void (*reset)(CURL *c);
	const char *(*error)(int code);
	struct curl_slist *(*append)(struct curl_slist *l, const char *s);
	void (*free_all)(struct curl_slist *l);
} library; /* opened once, and never closed */

struct http {
	CURL *curl;
};

static bool open_library(void)
{
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
	void *l = NULL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !l; i++)
		l = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
	if (!l)
		return false;
	*(void **)&library.global_init = dlsym(l, "curl_global_init");
	*(void **)&library.init = dlsym(l, "curl_easy_init");
	*(void **)&library.cleanup = dlsym(l, "curl_easy_cleanup");
	*(void **)&library.setopt = dlsym(l, "curl_easy_setopt");
	*(void **)&library.perform = dlsym(l, "curl_easy_perform");
	*(void **)&library.getinfo = dlsym(l, "curl_easy_getinfo");
	*(void **)&library.reset = dlsym(l, "curl_easy_reset");
	*(void **)&library.error = dlsym(l, "curl_easy_strerror");
	*(void **)&library.append = dlsym(l, "curl_slist_append");
	*(void **)&library.free_all = dlsym(l, "curl_slist_free_all");
	return library.global_init && library.init && library.cleanup && library.setopt &&
	       library.perform && library.getinfo && library.reset && library.error &&
	       library.append && library.free_all && library.global_init(GLOBAL_DEFAULT) == E_OK;
}

int http_new(struct http **out, struct mp_err *err)
{
	struct http *h;

	if (!library.free_all && !open_library())
		return mp_fail(err, MP_EXIT_FAILURE, -ENOENT,
			       "pushing to a URL needs libcurl.so.4, which cannot be loaded: "
			       "install libcurl4 (the static memprof loads no library)");
	h = calloc(1, sizeof(*h));
	if (h)
		h->curl = library.init();
	if (!h || !h->curl) {
		free(h);
		return mp_fail(err, MP_EXIT_FAILURE, -ENOMEM, "out of memory");
	}
	*out = h;
	return 0;
}

void http_free(struct http *h)
{
	if (!h)
		return;
	library.cleanup(h->curl);
	free(h);
}

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_answer *a = arg;
	size_t room = HTTP_ANSWER - a->n, some = size * n < room ? size * n : room;

	memcpy(a->body + a->n, data, some);
	a->n += some;
	a->body[a->n] = 0;
	return size * n;
}

static size_t take_header(char *data, size_t size, size_t n, void *arg)
{
	static const char name[] = "retry-after:";
	struct http_answer *a = arg;
	char value[32];
	size_t length = size * n, i = sizeof(name) - 1;

	/* A date, which is the other form, is not taken. */
	if (length > i && !strncasecmp(data, name, i)) {
		snprintf(value, sizeof(value), "%.*s", (int)(length - i), data + i);
		a->retry_after_s = strtoull(value, NULL, 10);
	}
	return length;
}

static int on_progress(void *arg, int64_t a, int64_t b, int64_t c, int64_t d)
{
	(void)a, (void)b, (void)c, (void)d;
	return __atomic_load_n((const bool *)arg, __ATOMIC_ACQUIRE);
}

static struct curl_slist *headers_of(const struct http_request *r)
{
	struct curl_slist *list, *more;
	char text[256];

	snprintf(text, sizeof(text), "Content-Type: %s", r->type);
	list = library.append(NULL, text);
	/* Without it libcurl waits for an answer to 100-continue. */
	more = list ? library.append(list, "Expect:") : NULL;
	snprintf(text, sizeof(text), "Content-Encoding: %s", r->encoding ? r->encoding : "");
	if (more && r->encoding)
		more = library.append(list, text);
	for (const char *const *h = r->header; more && h && *h; h++)
		more = library.append(list, *h);
	if (!more && list)
		library.free_all(list);
	return more;
}

int http_post(struct http *h, const struct http_request *r, const bool *cancelled,
	      struct http_answer *a)
{
	struct curl_slist *headers = headers_of(r);
	char error[ERROR_SIZE] = "";
	int code;

	memset(a, 0, sizeof(*a));
	if (!headers) {
		snprintf(a->why, sizeof(a->why), "out of memory");
		return 0;
	}
	library.reset(h->curl);
	library.setopt(h->curl, OPT_URL, r->url);
	library.setopt(h->curl, OPT_PROTOCOLS, HTTP_ONLY);
	library.setopt(h->curl, OPT_HTTPHEADER, headers);
	library.setopt(h->curl, OPT_USERAGENT, "memprof/" MEMPROF_VERSION);
	library.setopt(h->curl, OPT_POSTFIELDS, r->body);
	library.setopt(h->curl, OPT_POSTFIELDSIZE_LARGE, (int64_t)r->n);
	library.setopt(h->curl, OPT_WRITEFUNCTION, take_body);
	library.setopt(h->curl, OPT_WRITEDATA, a);
	library.setopt(h->curl, OPT_HEADERFUNCTION, take_header);
	library.setopt(h->curl, OPT_HEADERDATA, a);
	library.setopt(h->curl, OPT_ERRORBUFFER, error);
	library.setopt(h->curl, OPT_NOSIGNAL, 1l);
	library.setopt(h->curl, OPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	library.setopt(h->curl, OPT_TIMEOUT_MS, TOTAL_MS);
	library.setopt(h->curl, OPT_NOPROGRESS, 0l);
	library.setopt(h->curl, OPT_XFERINFOFUNCTION, on_progress);
	library.setopt(h->curl, OPT_XFERINFODATA, cancelled);
	code = library.perform(h->curl);
	library.free_all(headers);
	if (code == E_ABORTED)
		return -ECANCELED;
	if (code == E_OK)
		library.getinfo(h->curl, INFO_RESPONSE_CODE, &a->status);
	else
		snprintf(a->why, sizeof(a->why), "%s", *error ? error : library.error(code));
	return 0;
}
