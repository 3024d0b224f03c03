/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a profile says about its process: service.name, process.*, host.*, container.id, k8s.pod.uid, and the user's
 * labels, with the names of OpenTelemetry's semantic conventions.  Nothing of the command line or the environment of the
 * process, which can have passwords.
 */
#ifndef PUSH_IDENTITY_H
#define PUSH_IDENTITY_H

#include <sys/types.h>
#include "export/otlp.h"
#include "lib/err.h"
#include "lib/vec.h"

struct identity {
	VEC(struct otlp_attribute) attributes; /* keys and texts owned; valid UTF-8 */
};

/* Is @text KEY=VALUE, with a key of letters, digits, '.', '_', '-' and '/'?  */
bool identity_is_label(const char *text);
/* @label: KEY=VALUE, @n of them, which replace what is found.  Return: 0 with @id, to be freed by identity_free(); or
 * -ENOMEM. */
int identity_take(struct identity *id, pid_t pid, const char *const *label, size_t n);
void identity_free(struct identity *id);
/* Return: the text of attribute @key, or NULL. */
const char *identity_text(const struct identity *id, const char *key);

#endif
