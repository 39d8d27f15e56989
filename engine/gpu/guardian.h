/* The guardian's own side; see engine/base/guardian.h. */
#ifndef GPU_GUARDIAN_H
#define GPU_GUARDIAN_H

#include "engine/base/guardian.h"

/* Serves the socket until the other end closes. device: whose memory, its ordinal. The exit status of a process. */
int guardian_serve(int device, int socket);

#endif
