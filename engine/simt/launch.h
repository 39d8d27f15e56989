/* The launch under way, as the rest of the runtime sees it. */
#ifndef SIMT_LAUNCH_H
#define SIMT_LAUNCH_H

#include "engine/simt/simt.h"

const struct simt_options *launch_options(void);
bool launch_rehearsed(void); /* launches do nothing now */
/* Before the process ends within a block: the others that run come to their end, and none begins. */
void launch_drain(void);

#endif
