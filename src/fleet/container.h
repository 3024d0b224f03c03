/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FLEET_CONTAINER_H
#define FLEET_CONTAINER_H

#include "lib/err.h"

#define CONTAINER_ID 65

/**
 * container_resolve() - find the id of a container
 * @text: 12 to 64 digits of its id; or its name, as docker, podman or Kubernetes (containerd) calls it
 * @roots: root directories in which the engines' files are looked for, "" for "/", until one has the name; NULL ends them
 * @id: set to the first digits of its id, or all
 *
 * Names are read from the files of the engines; no engine is asked.
 * Return: 0, or -ENOENT (none or several have this name) or -ENOMEM with @err.
 */
int container_resolve(const char *text, const char *const roots[], char id[CONTAINER_ID],
		      struct mp_err *err);

#endif
