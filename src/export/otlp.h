/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes OpenTelemetry's profiles (export/otlp.proto): alloc_space, alloc_objects, inuse_space and inuse_objects, each
 * a profile, which share stacks, locations with inlined functions, and mappings with build ids.
 * Source: opentelemetry.proto.profiles.v1development of 2026; opentelemetry.io/docs/specs/otel/profiles/mappings.
 */
#ifndef EXPORT_OTLP_H
#define EXPORT_OTLP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "export/window.h"

struct model;

/* An attribute of the resource: a text, or if that is NULL a number. */
struct otlp_attribute {
	const char *key, *text;
	int64_t number;
};

struct otlp_resource {
	const struct otlp_attribute *attribute;
	size_t n;
	/* Return: process.executable.build_id.htlhash of module @index of the model's facts, 32 digits; NULL: it is not
	 * known.  Valid until the profile is written. */
	const char *(*file_hash)(void *ctx, size_t index);
	void *ctx;
};

/* Writes an ExportProfilesServiceRequest.  Return: 0 or a negative errno. */
int otlp_write(struct model *m, const struct profile_window *w, const struct otlp_resource *r,
	       FILE *out);

/* Reads an ExportProfilesServiceResponse of @n bytes.  Return: the number of rejected profiles, with the reason in
 * @message; 0: none; -EBADMSG: it is none. */
int64_t otlp_rejected(const uint8_t *bytes, size_t n, char *message, size_t size);

#endif
